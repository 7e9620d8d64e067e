# Runs in a container and reports what its repository contains. Arguments: the repository's folder, the base commit.
# Prints lines of the form `key value`, from which the caller decides. Changes nothing.
set -eu
LC_ALL=C
export LC_ALL
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent GIT_OPTIONAL_LOCKS=0
export GIT_NO_REPLACE_OBJECTS=1 GIT_GRAFT_FILE=/dev/null
work=$(mktemp -d /tmp/clawbench.verify.XXXXXX)

g() { git -c safe.directory='*' -c core.fsmonitor=false "$@"; }
. /clawbench/repositories.sh

# prove FOLDER START PREFIX: compares all objects, not only commits, because a dangling blob is a leak as well.
prove() {
    cd "$1"
    echo "$3start $(g rev-parse --verify 'HEAD^{commit}')"
    g rev-list --objects "$2" | cut -d' ' -f1 | sort -u >"$work/closure"
    g cat-file --batch-all-objects --batch-check='%(objectname)' | sort -u >"$work/held"
    echo "$3objects $(wc -l <"$work/held")"
    echo "$3commits $(g rev-list --count "$2")"
    echo "$3digest sha256:$(sha256sum <"$work/held" | cut -d' ' -f1)"
    echo "$3foreign $(comm -13 "$work/closure" "$work/held" | wc -l)"
    echo "$3missing $(comm -23 "$work/closure" "$work/held" | wc -l)"
    g for-each-ref --format="$3ref %(refname) %(objectname)"
    # all files in .git are listed, and the caller accepts only those that are known to be harmless
    find .git ! -type d -print0 | tr '\n\0' '?\n' | sed "s|^|$3file |"
    echo "$3dirty $(g status --porcelain --untracked-files=no | wc -l)"
    printf '%s\n' "$PWD/.git" >>"$work/proven"
    submodules_of "$2" >"$work/links.${#3}"
    while IFS= read -r line; do
        path=${line#* }
        [ -e "$path/.git" ] || continue
        (prove "$PWD/$path" "${line%% *}" "$3submodule ") </dev/null
    done <"$work/links.${#3}"
}

# prove_others: the image has no other copy of the repository, nor objects that no repository owns.
prove_others() {
    g rev-list HEAD | sort >"$work/commits"
    g ls-tree HEAD | sort >"$work/root"
    repositories >"$work/repositories"
    while IFS= read -r other; do
        is_proven "$other" && continue
        echo "other $other"
        if is_copy "$other" "$work/commits" "$work/root"; then echo "copy $other"; fi
    done <"$work/repositories"
    find / \( -path /proc -o -path /sys -o -path /dev \) -prune -o -name 'pack-*.pack' -type f -print 2>/dev/null |
        while IFS= read -r pack; do
            owner=${pack%/objects/pack/*}
            if [ "$owner" = "$pack" ] || ! grep -Fqx -- "$owner" "$work/repositories"; then echo "copy $pack"; fi
        done
}

is_proven() {
    while IFS= read -r known; do
        if [ "$1" -ef "$known" ]; then return 0; fi
    done <"$work/proven"
    return 1
}
cd "$1"
# only the image's own setup commits may lie between the base commit and the start
g rev-list --format='%ce %s' "$2..HEAD" | grep -v '^commit ' | grep -vcx 'setup@swebench.config SWE-bench' |
    sed 's/^/beyond /'
if g merge-base --is-ancestor "$2" HEAD; then echo "base reachable"; else echo "base lost"; fi
prove "$1" HEAD ""
cd "$1"
prove_others
rm -rf "$work"
