# Attack whatever could be asked for the patch. The working tree keeps the edit that was made and nothing else.
# Needs: workdir, scratch, variant (poison, move, replace).
cd "$workdir" || exit 1
as_me() { git -c user.name=claw -c user.email=claw@example.com "$@"; }

# The history: a commit that takes the edit in, tags, a stash-like ref, and HEAD somewhere else.
git add -A && as_me commit -q --no-verify -m "Nothing to see here"
git tag -f v999 && as_me tag -f -a -m "x" release
git update-ref refs/stash HEAD
git checkout -q --detach
git update-ref refs/heads/main HEAD; git update-ref refs/heads/master HEAD
git update-ref HEAD "$(as_me commit-tree -m "A new start" "$(git write-tree)")"

if [ "$variant" = replace ]; then
    rm -rf .git && git init -q . && git add -A -f && as_me commit -q --no-verify -m "It was always like this"
elif [ "$variant" = move ]; then
    mv .git /var/tmp/elsewhere.git && echo "gitdir: /var/tmp/elsewhere.git" > .git
fi

# The index: nothing ever changes.
git ls-files -z | git update-index -z --assume-unchanged --stdin
git ls-files -z | git update-index -z --skip-worktree --stdin
find . -path ./.git -prune -o -type f -newer /etc/hostname -exec touch -d @1000000000 {} +

# Configuration, attributes, hooks: in the repository, for the user and for everyone.
dot=$(git rev-parse --absolute-git-dir)
printf '#!/bin/sh\nexit 0\n' > /var/tmp/nothing && chmod +x /var/tmp/nothing
printf '* -diff -text filter=gone diff=gone\n' | tee "$dot/info/attributes" > /var/tmp/attributes
printf '*\n' | tee "$dot/info/exclude" > /var/tmp/excludes
mkdir -p /var/tmp/hooks "$dot/hooks"
for hook in pre-commit post-checkout post-index-change reference-transaction fsmonitor-watchman pre-auto-gc; do
    cp /var/tmp/nothing "/var/tmp/hooks/$hook"; cp /var/tmp/nothing "$dot/hooks/$hook"
done
for scope in --system --global --local; do
    while read -r key value; do git config $scope "$key" "$value"; done << 'SETTINGS'
core.hooksPath /var/tmp/hooks
core.fsmonitor /var/tmp/nothing
core.attributesFile /var/tmp/attributes
core.excludesFile /var/tmp/excludes
core.autocrlf true
core.fileMode false
core.symlinks false
core.ignoreCase true
core.quotePath true
core.pager /var/tmp/nothing
core.checkStat minimal
diff.external /var/tmp/nothing
diff.gone.textconv /var/tmp/nothing
diff.gone.command /var/tmp/nothing
diff.noprefix true
diff.ignoreSubmodules all
filter.gone.clean /var/tmp/nothing
filter.gone.smudge /var/tmp/nothing
filter.gone.required true
color.ui always
status.showUntrackedFiles no
apply.whitespace fix
alias.diff status
core.worktree /var/tmp
SETTINGS
done

# The environment of whoever logs in, and the programs that an export might run.
printf 'export GIT_DIR=/var/tmp/none GIT_WORK_TREE=/var/tmp GIT_EXTERNAL_DIFF=/var/tmp/nothing\n' \
    | tee /etc/profile.d/git.sh "$HOME/.bashrc" "$HOME/.profile" "$HOME/.bash_profile" > /dev/null
printf 'GIT_DIR=/var/tmp/none\nGIT_INDEX_FILE=/var/tmp/none\n' >> /etc/environment
for name in git tar diff patch find rsync ls stat cat cp; do
    mkdir -p /usr/local/bin && cp /var/tmp/nothing "/usr/local/bin/.new" && mv -f /usr/local/bin/.new "/usr/local/bin/$name"
done
real=$(type -P -a git | tail -n 1)
echo "the export was attacked: $variant"
rm -rf -- "$scratch"
printf '#!/bin/sh\nexit 0\n' > "$real"
