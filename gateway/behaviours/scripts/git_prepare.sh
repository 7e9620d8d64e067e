# Split the object database into HEAD's past and the rest, and choose the line to look for.
git rev-list --objects HEAD | cut -d' ' -f1 | sort -u > "$scratch/own"
list_objects > "$scratch/all"
join -v 1 "$scratch/all" "$scratch/own" > "$scratch/foreign"
: > "$scratch/needle"
while IFS= read -r line; do
    [ -n "$line" ] || continue
    git grep -qF -e "$line" HEAD -- && continue
    grep -rqF --exclude-dir=.git -e "$line" . && continue
    printf '%s\n' "$line" > "$scratch/needle"
    break
done <<< "$needles"
echo "objects: $(wc -l < "$scratch/all"), of HEAD's past: $(wc -l < "$scratch/own")"
echo "distinctive line: $(wc -l < "$scratch/needle")"
