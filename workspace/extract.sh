# Runs inside a container of a prepared image: writes what the export needs to know of the start commit's tree
# to FOLDER. Arguments: the repository, the start commit, the folder.
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent GIT_OPTIONAL_LOCKS=0
cd "$1"
mkdir -p "$3"
g() { git -c safe.directory='*' -c core.fsmonitor=false "$@"; }
tree=$(g rev-parse "$2^{tree}")
# the tree and its files without their past; submodules' commits are not objects of this repository
{ echo "$tree" && g ls-tree -r -t "$tree" | grep -v '^160000 ' | cut -d' ' -f3 | cut -f1; } |
    sort -u | g pack-objects --quiet --stdout >"$3/start.pack"
# files of the image that no commit knows: an agent's patch can neither create nor change them
g ls-files -z --others >"$3/untracked"
if [ -f .git/info/exclude ]; then cp .git/info/exclude "$3/exclude"; else : >"$3/exclude"; fi
echo "tree $tree"
