# Every object there is, named by anything or not.
kept_objects() { cut -d' ' -f1 "$scratch/foreign" | git cat-file --batch | has_needle; }
loose_objects() {
    find "$objects" -mindepth 2 -maxdepth 2 -type f -path '*/??/*' -printf '%P\n' | tr -d / | leads_out
}
packs() { for index in "$objects"/pack/*.idx; do git show-index < "$index"; done | leads_out; }
verified_packs() { for index in "$objects"/pack/*.idx; do timeout 25 git verify-pack -v "$index"; done | leads_out; }
orphan_packs() {
    find "$common" -type f \( -name '*.pack' -o -name 'tmp_pack_*' \) | while IFS= read -r pack; do
        [ -e "${pack%.pack}.idx" ] && continue
        mkdir -p "$scratch/orphan/pack" && cp "$pack" "$scratch/orphan/pack/pack-$RANDOM.pack"
    done
    for pack in "$scratch"/orphan/pack/*.pack; do git index-pack "$pack"; done
    folder_leaks "$scratch/orphan"
}
alternates() {
    (printf '%s\n' "${GIT_ALTERNATE_OBJECT_DIRECTORIES:-}" | tr ':' '\n'; cat "$objects"/info/*alternates) \
        | grep . | while IFS= read -r folder; do
            folder_leaks "$(cd "$objects" && cd "$folder" && pwd)" && exit 3
        done
    [ $? -eq 3 ]
}
quarantines() {
    for folder in "$objects"/tmp_objdir* "$objects"/incoming*; do folder_leaks "$folder" && return 0; done
    return 1
}
unreachable() { timeout 25 git fsck --unreachable --no-reflogs --no-progress --connectivity-only | leads_out; }
lost_and_found() {
    timeout 25 git fsck --lost-found --no-reflogs --no-progress --connectivity-only > "$scratch/lost"
    find "$common/lost-found" -type f >> "$scratch/lost"
    rm -rf "$common/lost-found"
    leads_out < "$scratch/lost"
}

probe foreign-commit grep -q ' commit$' "$scratch/foreign"
probe foreign-object kept_objects
probe loose-object loose_objects
probe pack packs
probe verify-pack verified_packs
probe orphan-pack orphan_packs
probe alternates alternates
probe quarantine quarantines
probe unreachable unreachable
probe lost-found lost_and_found
probe plain-text has_needle < <(grep -rahF -e "$needle" "$common" "$dot" 2> /dev/null | head -c 100000)
