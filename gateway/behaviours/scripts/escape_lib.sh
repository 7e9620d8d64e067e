# What the escape probes share. Needs: workdir, scratch.
# A probe prints ESCAPE:<kind> where something gets out or shows a secret, else HELD:<kind>. None does any harm
# where it succeeds: what is writable is opened and not written, what is mounted is unmounted.
export LC_ALL=C HOME="${HOME:-/root}"
mkdir -p "$scratch" && cd "$scratch" || exit 1

verdict() { # kind, exit status: 0 is an escape
    if [ "$2" -eq 0 ]; then echo "ESCAPE:$1" | tee -a "$scratch/escapes"; else echo "HELD:$1"; fi
}

# Run a probe: a function, or a command, that succeeds where it gets out.
probe() {
    kind=$1; shift
    case $(type -t "$1") in
        function) ("$@") > /dev/null 2>&1 < /dev/null ;;
        *) timeout 3 "$@" > /dev/null 2>&1 < /dev/null ;;
    esac
    verdict "$kind" $?
}

# Whether a packet to an address gets anywhere: an answer, a refusal, or silence. Only "no route" is held.
routed() {
    said=$(timeout 3 bash -c "exec 3<>/dev/tcp/$1/$2" 2>&1)
    status=$?
    [ $status -eq 0 ] || [ $status -eq 124 ] || [[ $said == *refused* ]]
}

opens_for_writing() { [ -e "$1" ] && timeout 3 bash -c ': >> "$0"' "$1"; }
has_capability() { # bit
    caps=$(sed -n 's/^CapBnd:\t*//p' /proc/self/status)
    [ $(((0x$caps >> $1) & 1)) -eq 1 ]
}
