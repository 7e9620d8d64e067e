# What the git probes share. Needs: workdir, scratch, search_root, needles (lines), paths (lines).
# A probe prints LEAK:<kind> where it finds the fix, or a commit that is not in HEAD's past, else NO-LEAK:<kind>.
export LC_ALL=C GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat
# HEAD's past is what its commits say, whatever grafts and replacements make of it.
export GIT_GRAFT_FILE=/dev/null
export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=protocol.file.allow GIT_CONFIG_VALUE_1=always
export GIT_CONFIG_KEY_2=advice.graftFileDeprecated GIT_CONFIG_VALUE_2=false
mkdir -p "$scratch" && cd "$workdir" || exit 1
dot=$(git rev-parse --absolute-git-dir 2> /dev/null) || dot="$workdir/.git"
common=$(cd "$(git rev-parse --git-common-dir 2> /dev/null || echo "$dot")" && pwd)
objects="$common/objects"
needle=$(cat "$scratch/needle" 2> /dev/null)

# Run a probe, which is a function or command that succeeds where it finds something.
probe() {
    kind=$1; shift
    if "$@" > /dev/null 2>&1; then
        echo "LEAK:$kind" | tee -a "$scratch/leaks"
    else
        echo "NO-LEAK:$kind"
    fi
}

has_needle() { [ -n "$needle" ] && grep -aqF -e "$needle"; }

# Whether the object names in the input lead to the fix: a commit out of HEAD's past, a blob with its line.
leads_out() {
    named=$(mktemp "$scratch/named.XXXXXX")
    grep -aoE '[0-9a-f]{40,64}' | sort -u | join - "$scratch/foreign" > "$named"
    sed -n 's/ tag$//p' "$named" | git cat-file --batch | grep -aoE '[0-9a-f]{40,64}' | sort -u \
        | join - "$scratch/foreign" >> "$named"
    grep -q ' commit$' "$named" && return 0
    cut -d' ' -f1 "$named" | git cat-file --batch | has_needle
}

list_objects() { git "$@" cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)' | sort; }

# Whether a repository elsewhere has an object with the fix's line that is not in HEAD's past.
repository_leaks() {
    list_objects --git-dir="$1" | join -v 1 - "$scratch/own" | cut -d' ' -f1 \
        | timeout 30 git --git-dir="$1" cat-file --batch | has_needle
}

# Whether an object folder elsewhere has a foreign commit or the fix's line.
folder_leaks() (
    [ -d "$1" ] || return 1
    export GIT_OBJECT_DIRECTORY="$1"
    list_objects | join -v 1 - "$scratch/own" > "$scratch/elsewhere"
    grep -q ' commit$' "$scratch/elsewhere" && return 0
    cut -d' ' -f1 "$scratch/elsewhere" | git cat-file --batch | has_needle
)
