# Runs in a container and reports what its repository contains. Arguments: the repository's folder, the base commit.
# Prints lines of the form `key value`, from which the caller decides. Changes nothing.
set -eu
LC_ALL=C
export LC_ALL
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent GIT_OPTIONAL_LOCKS=0
export GIT_NO_REPLACE_OBJECTS=1 GIT_GRAFT_FILE=/dev/null
work=$(mktemp -d /tmp/clawbench.verify.XXXXXX)

g() { git -c safe.directory='*' -c core.fsmonitor=false "$@"; }

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
    g ls-tree -r "$2" | sed -n 's/^160000 commit \([0-9a-f]*\)\t/\1 /p' >"$work/links.${#3}"
    while read -r pin path; do
        [ -e "$path/.git" ] || continue
        (prove "$PWD/$path" "$pin" "$3submodule ") </dev/null
    done <"$work/links.${#3}"
}
cd "$1"
# only the image's own setup commits may lie between the base commit and the start
g rev-list --format='%ce %s' "$2..HEAD" | grep -v '^commit ' | grep -vcx 'setup@swebench.config SWE-bench' |
    sed 's/^/beyond /'
if g merge-base --is-ancestor "$2" HEAD; then echo "base reachable"; else echo "base lost"; fi
prove "$1" HEAD ""
rm -rf "$work"
