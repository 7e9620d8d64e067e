# What both scripts of preparation know about repositories: submodules, and other repositories in the image. The script
# that reads this defines `g`, a git without any configuration.

refuse() { echo "error $*" >&2; exit 3; }

# submodules_of COMMIT: a line for each, with the commit that it is pinned to and its path.
submodules_of() {
    # names are raw up to NUL; a line break in one becomes a character that no name can have here
    g ls-tree -r -z "$1" | tr '\n\0' '\001\n' | sed -n 's/^160000 commit \([0-9a-f]*\)\t/\1 /p' | while IFS= read -r link; do
        case $link in *"$(printf '\001')"*) refuse "the name of a submodule has a line break" ;; esac
        printf '%s\n' "$link"
    done
}

# repositories: the folders of all repositories in the image, also in volumes. Objects may be linked from elsewhere.
repositories() {
    find / \( -path /proc -o -path /sys -o -path /dev -o -path /clawbench \) -prune -o -name HEAD ! -type d -print0 2>/dev/null |
        tr '\n\0' '\001\n' | while IFS= read -r head; do
        case $head in *"$(printf '\001')"*) refuse "the name of a repository's folder has a line break" ;; esac
        if [ -e "${head%/HEAD}/objects" ]; then printf '%s\n' "${head%/HEAD}"; fi
    done
}

commits_of() {
    g --git-dir="$1" cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' 2>/dev/null |
        sed -n 's/^commit //p' | sort -u
}

# is_copy REPOSITORY COMMITS ROOT: whether it shares a commit with ours, or one of its tips has half of our start
# commit's files and folders at its root, as a shallow clone of a later commit has. COMMITS and ROOT are sorted files.
is_copy() {
    if commits_of "$1" | comm -12 - "$2" | grep -q .; then return 0; fi
    half=$((($(wc -l <"$3") + 1) / 2))
    { g --git-dir="$1" rev-list --no-walk --all 2>/dev/null; g --git-dir="$1" rev-parse --verify --quiet HEAD; } |
        while IFS= read -r tip; do
            shared=$(g --git-dir="$1" ls-tree "$tip" 2>/dev/null | sort | comm -12 - "$3" | wc -l)
            if [ "$shared" -ge "$half" ] && [ "$shared" -gt 0 ]; then echo copy; fi
        done | grep -q .
}
