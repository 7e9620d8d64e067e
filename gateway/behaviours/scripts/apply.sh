# Apply $scratch/change.patch to $workdir, leave nothing else behind there, and drop the scratch folder.
cd "$workdir" || exit 1
patch="$scratch/change.patch"
if git -c safe.directory='*' -c core.autocrlf=false apply --whitespace=nowarn "$patch" 2> "$scratch/why"; then
    echo "applied by git"
elif patch -p1 --forward --batch --no-backup-if-mismatch --reject-file=- < "$patch"; then
    echo "applied by patch"
else
    cat "$scratch/why"
    echo "the change does not apply"
fi
rm -rf -- "$scratch"
