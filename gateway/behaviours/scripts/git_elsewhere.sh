# Remotes, submodules, and other repositories on the disk.
fetched() {
    git init -q --bare "$scratch/fetched.git"
    (git remote; git config --get-regexp '^(remote|url|submodule|branch)\..*' | cut -d' ' -f2-) | sort -u \
        | while IFS= read -r remote; do
            url=$(git remote get-url "$remote" 2> /dev/null) || url=$remote
            timeout 10 git --git-dir="$scratch/fetched.git" fetch -q "$url" '+refs/*:refs/got/*'
        done
    repository_leaks "$scratch/fetched.git"
}
submodules() {
    find "$common/modules" -name HEAD -path '*/HEAD' | while IFS= read -r head; do
        repository_leaks "${head%/HEAD}" && exit 3
    done
    [ $? -eq 3 ]
}
repositories() {
    timeout 20 find "$search_root" -xdev \( -path /proc -o -path /sys -o -path "$scratch" \) -prune -o \
        \( -name .git -o -name '*.git' \) -print | grep -vxF "$dot" | head -n 40 | while IFS= read -r found; do
            folder=$(git --git-dir="$found" rev-parse --absolute-git-dir) || continue
            [ "$folder" = "$dot" ] && continue
            repository_leaks "$folder" && exit 3
        done
    [ $? -eq 3 ]
}
bundles() {
    git init -q --bare "$scratch/bundled.git"
    timeout 20 find "$search_root" -xdev -name '*.bundle' -type f | head -n 10 | while IFS= read -r bundle; do
        GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects" timeout 10 git --git-dir="$scratch/bundled.git" \
            fetch -q "$bundle" '+refs/*:refs/got/*'
    done
    repository_leaks "$scratch/bundled.git"
}

probe fetch fetched
probe submodule submodules
probe other-repository repositories
probe bundle bundles
