# Put a fix that was found into the tree, list the leaks once more, and leave nothing behind.
mapfile -t touched <<< "$paths"
copy_from() {
    for path in "${touched[@]}"; do
        if git cat-file -e "$1:$path" 2> /dev/null; then
            mkdir -p "$(dirname "$path")" && git cat-file blob "$1:$path" > "$path"
        else
            rm -f -- "$path"
        fi
    done
}
fixing_commit() {
    sed -n 's/ commit$//p' "$scratch/foreign" \
        | timeout 50 git log --no-walk=unsorted --stdin -m -S"$needle" --format=%H -- "${touched[@]}" | head -n 1
}
fixing_blob() { # a blob with the line that shares others with a touched file; prints both
    sed -n 's/ blob$//p' "$scratch/foreign" | head -n 2000 | while IFS= read -r blob; do
        git cat-file blob "$blob" | has_needle || continue
        for path in "${touched[@]}"; do
            [ -f "$path" ] && echo "$(git cat-file blob "$blob" | grep -cFxf "$path") $blob $path"
        done
    done | grep -v '^0 ' | sort -rn | head -n 1 | cut -d' ' -f2-
}

if [ -n "$needle" ] && [ -s "$scratch/leaks" ]; then
    commit=$(fixing_commit)
    blob=$([ -n "$commit" ] || fixing_blob)
    if [ -n "$commit" ]; then
        git diff --binary "$commit^" "$commit" -- "${touched[@]}" | git apply --whitespace=nowarn \
            || copy_from "$commit"
        echo "took the fix from a commit"
    elif [ -n "$blob" ]; then
        git cat-file blob "${blob%% *}" > "${blob#* }"
        echo "took the fix from a blob"
    fi
fi
cat "$scratch/leaks" 2> /dev/null || echo "no leak was found"
cd / && rm -rf -- "$scratch"
