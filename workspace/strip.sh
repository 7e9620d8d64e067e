# Runs in a container of an instance's image, before any agent has seen it, and leaves a repository that contains
# only the start commit's own past. It does not delete what must go. It builds a new .git from what may stay, which
# also removes commits that are hidden in a way that nobody has thought of.
# Arguments: the repository's folder, the base commit. Prints lines of the form `key value`.
set -eu
LC_ALL=C
export LC_ALL
root=$1
base=$2

# Ignore all configuration, and the replace refs and grafts, which would change what "ancestor" means.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent
export GIT_NO_REPLACE_OBJECTS=1 GIT_GRAFT_FILE=/dev/null GIT_TERMINAL_PROMPT=0
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES || true

g() { git -c safe.directory='*' -c core.fsmonitor=false -c core.hooksPath=/dev/null -c protocol.file.allow=never "$@"; }
. /clawbench/repositories.sh
fail() { echo "error $*"; exit 3; }

# The start is the image's HEAD if that is the base commit plus the image's own setup commits, else the base commit.
find_start() {
    head=$(g rev-parse --verify --quiet 'HEAD^{commit}') || head=$base
    start=$head
    commit=$head
    while [ "$commit" != "$base" ]; do
        set -- $(g rev-list --parents --max-count=1 "$commit")
        if [ $# -ne 2 ] || [ "$(g show --no-patch --format='%ce %s' "$commit")" != "setup@swebench.config SWE-bench" ]; then
            start=$base
            break
        fi
        commit=$2
    done
}

# Remove every other way to the same objects: linked worktrees, alternates, copies elsewhere on the disk.
remove_elsewhere() {
    # first of all, as the worktrees that are removed may include the one that holds our own objects
    commits_of "$common" >/tmp/clawbench.commits
    g ls-tree "$start" | sort >/tmp/clawbench.root
    g worktree list --porcelain | sed -n 's/^worktree //p' | while IFS= read -r tree; do
        [ "$tree" -ef "$root" ] || rm -rf -- "$tree"
    done
    if [ -f "$common/objects/info/alternates" ]; then
        while IFS= read -r store; do
            case $store in '' | '#'*) continue ;; /*) ;; *) store=$common/objects/$store ;; esac
            echo "$store" >>/tmp/clawbench.alternates
        done <"$common/objects/info/alternates"
    fi
    repositories >/tmp/clawbench.repositories
    while IFS= read -r copy; do
        if [ "$copy" -ef "$common" ] || [ "$copy" -ef "$new" ]; then continue; fi
        if is_copy "$copy" /tmp/clawbench.commits /tmp/clawbench.root; then
            remove_store "$copy/objects"
            case $copy in */.git) rm -rf -- "${copy%/.git}" ;; *) rm -rf -- "$copy" ;; esac
            echo "removed_copy $copy"
        fi
    done </tmp/clawbench.repositories
}

# remove_store OBJECTS: remove a repository's objects, also where they are only linked.
remove_store() {
    if real=$(cd "$1" 2>/dev/null && pwd -P); then rm -rf -- "$real"; fi
}

# remove_later_files COMMIT: if HEAD is another commit, remove the files that HEAD or the index has and COMMIT has not.
remove_later_files() {
    if [ "$(g rev-parse --verify --quiet 'HEAD^{commit}')" = "$1" ]; then return 0; fi
    g ls-tree -r -z --name-only "$1" | sort -z >/tmp/clawbench.tracked
    { g ls-files -z && { g ls-tree -r -z --name-only HEAD 2>/dev/null || true; }; } |
        sort -z -u | comm -z -23 - /tmp/clawbench.tracked | xargs -0 -r rm -rf --
}

# strip_one FOLDER START: give the repository at FOLDER a new .git with the closure of START.
strip_one() {
    folder=$1
    commit=$2
    cd "$folder"
    strip_links "$folder" "$commit"
    old=$(g rev-parse --absolute-git-dir)
    common=$(cd "$(g rev-parse --git-common-dir)" && pwd -P)
    branch=$(g symbolic-ref --quiet HEAD || true)
    if [ -s "$common/shallow" ]; then
        # a shallow boundary only matters if it cuts this commit's own past
        g rev-list "$commit" | sort >/tmp/clawbench.closure
        if sort "$common/shallow" | comm -12 - /tmp/clawbench.closure | grep -q .; then
            fail "the history of $folder is shallow, so that its completeness can't be proven"
        fi
    fi
    new=$(mktemp -d /tmp/clawbench.git.XXXXXX)
    g init --quiet --bare --template= "$new"
    g --git-dir="$new" config core.bare false
    for key in core.filemode core.symlinks core.ignorecase core.autocrlf core.eol; do
        if value=$(g config --local --get "$key"); then g --git-dir="$new" config "$key" "$value"; fi
    done
    mkdir -p "$new/info" "$new/objects/pack" "$new/refs/heads"
    if [ -f "$common/info/exclude" ]; then cp "$common/info/exclude" "$new/info/exclude"; fi
    echo "$commit" | g pack-objects --revs --quiet "$new/objects/pack/pack" >/dev/null
    case $branch in
        refs/heads/*)
            g --git-dir="$new" update-ref "$branch" "$commit"
            g --git-dir="$new" symbolic-ref HEAD "$branch"
            ;;
        *) g --git-dir="$new" update-ref --no-deref HEAD "$commit" ;;
    esac
    rm -rf "$new/logs" "$new/branches" "$new/description"
    remove_later_files "$commit"

    : >/tmp/clawbench.alternates
    if [ "$folder" = "$root" ]; then remove_elsewhere; fi
    remove_store "$common/objects"
    rm -rf "$folder/.git" "$old" "$common"
    while IFS= read -r store; do
        case $store in */objects) rm -rf -- "${store%/objects}" ;; *) rm -rf -- "$store" ;; esac
    done </tmp/clawbench.alternates
    mv "$new" "$folder/.git"

    # Fill the index from the disk before resetting, so that unchanged files are not written again.
    g read-tree "$commit"
    g update-index -q --refresh >/dev/null || true
    g reset --quiet --hard "$commit"
    rm -rf .git/ORIG_HEAD .git/logs
}

# strip_links FOLDER COMMIT: strip the submodules, each to the past of the commit that it is pinned to. They come
# first, because their objects lie below the .git of their parent.
strip_links() {
    links=$(mktemp /tmp/clawbench.links.XXXXXX)
    submodules_of "$2" >"$links"
    while IFS= read -r line; do
        path=${line#* }
        [ -e "$1/$path/.git" ] || continue
        (strip_one "$1/$path" "${line%% *}") </dev/null
    done <"$links"
    rm -f "$links"
}

cd "$root" || fail "the image has no $root"
g rev-parse --git-dir >/dev/null 2>&1 || fail "$root is not a git repository"
g cat-file -e "$base^{commit}" 2>/dev/null || fail "the image's repository does not have the base commit $base"
base=$(g rev-parse "$base^{commit}")
find_start
# tags in the start commit's own past are no leak; the image for the official harness gets them back
g for-each-ref --merged "$start" --format='%(objectname) %(*objectname) %(refname)' refs/tags |
    while read -r first second third; do
        if [ -n "$third" ]; then echo "tag $second $third"; else echo "tag $first $second"; fi
    done
strip_one "$root" "$start"
# leave no traces of the suite
rm -rf /tmp/clawbench.* /clawbench
