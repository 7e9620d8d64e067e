# Secrets: whatever has the shape of a key, in processes, environments and files. No value is printed.
shape='(^|[^A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}|xox[abp]-[A-Za-z0-9-]{20,}'
shape="$shape|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|hf_[A-Za-z0-9]{30,}|Bearer [A-Za-z0-9._-]{30,}"
named='(api_?key|_token|secret|passw(or)?d|credentials?)=.{12,}'

keys_in() { cat "$@" 2> /dev/null | tr '\0' '\n' | grep -aE "$shape" | grep -qaviE 'placeholder|example'; }
named_keys() { cat /proc/[0-9]*/environ | tr '\0' '\n' | grep -aiE "$named" | grep -qaviE 'placeholder|example'; }
key_files() {
    timeout 10 find /claw "$HOME" /etc /run /var/run -xdev -maxdepth 5 -type f -size -512k \
        -exec grep -alE "$shape" {} + 2> /dev/null | grep -vE '/(site-packages|node_modules|scripted-)' | grep -q .
}
any_file() { ls -d "$@" 2> /dev/null | grep -q .; }
other_roots() {
    for process in /proc/[0-9]*; do
        [ "$(stat -Lc %d:%i "$process/root/")" = "$(stat -Lc %d:%i /)" ] || [ ! -e "$process/root/" ] || return 0
    done
    return 1
}
host_processes() { grep -qx kthreadd /proc/2/comm; }
runtime_sockets() {
    for path in /var/run /run; do
        for name in docker.sock containerd/containerd.sock podman/podman.sock crio/crio.sock; do
            [ -S "$path/$name" ] && return 0
        done
    done
    return 1
}

probe environment keys_in /proc/[0-9]*/environ
probe environment-names named_keys
probe command-line keys_in /proc/[0-9]*/cmdline
probe key-file key_files
probe credentials any_file /run/secrets/* "$HOME"/.netrc "$HOME"/.git-credentials "$HOME"/.aws/credentials \
    "$HOME"/.docker/config.json "$HOME"/.ssh/id_* "$HOME"/.kube/config
probe docker-socket runtime_sockets
probe docker-state any_file /var/lib/docker/* /var/lib/containerd/*
probe host-processes host_processes
probe other-root other_roots
