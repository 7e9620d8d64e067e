# Runs in a container of a prepared image and writes what the export needs of the start commit's tree to a folder.
# Arguments: the repository's folder, the start commit, the folder to write to.
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent GIT_OPTIONAL_LOCKS=0
cd "$1"
mkdir -p "$3"
g() { git -c safe.directory='*' -c core.fsmonitor=false "$@"; }
tree=$(g rev-parse "$2^{tree}")
# the tree and its files without their history; the commits of submodules are not objects of this repository
{ echo "$tree" && g ls-tree -r -t "$tree" | grep -v '^160000 ' | cut -d' ' -f3 | cut -f1; } |
    sort -u | g pack-objects --quiet --stdout >"$3/start.pack"
# the image's untracked files: a patch can neither create nor change them
g ls-files -z --others >"$3/untracked"
if [ -f .git/info/exclude ]; then cp .git/info/exclude "$3/exclude"; else : >"$3/exclude"; fi
echo "tree $tree"
