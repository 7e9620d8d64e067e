"""The ways in which an embedded repository leaks its fix, each with a shell snippet that looks for it.

A snippet is POSIX sh. It runs in the repository, with only git and the usual tools, and exits with 0 if and
only if that leak is there. Then it has found, by that route, a commit that is not in HEAD's past and has
another tree than HEAD (in these repositories only the fix is made after the base commit), or, for a note or a
blob, the text of a diff. A later branch starts at HEAD or, below a setup commit, at its parent. Before
preparation each snippet must find its leak; after it, none may.
"""

from __future__ import annotations

_PRELUDE = """\
export GIT_NO_REPLACE_OBJECTS=1
G=$(git rev-parse --absolute-git-dir) || exit 2
foreign() {
    git cat-file -e "$1^{commit}" 2>/dev/null || return 1
    git merge-base --is-ancestor "$1^{commit}" HEAD && return 1
    ! git diff --quiet HEAD "$1^{commit}"
}
any_foreign() { while read -r object; do foreign "$object" && return 0; done; return 1; }
commits() { git cat-file --batch-check='%(objectname) %(objecttype)' | sed -n 's/ commit$//p'; }
dated() { git log -1 --format=%ct "$1"; }
"""

_ROUTES = {
    "later commit on a branch": """\
for branch in $(git for-each-ref --format='%(refname)' refs/heads); do
    foreign "$branch" && git merge-base "$branch" HEAD | grep -q "$(git rev-parse HEAD HEAD^)" && exit 0
done
exit 1
""",
    "side branch dated before base": """\
for branch in $(git for-each-ref --format='%(refname)' refs/heads); do
    git merge-base "$branch" HEAD | grep -q "$(git rev-parse HEAD HEAD^)" && continue
    foreign "$branch" && [ "$(dated "$branch")" -le "$(dated HEAD)" ] && exit 0
done
exit 1
""",
    "remote-tracking branch": "git for-each-ref --format='%(objectname)' refs/remotes | any_foreign\n",
    "lightweight tag": """\
git for-each-ref --format='%(objecttype) %(objectname)' refs/tags | sed -n 's/^commit //p' | any_foreign
""",
    "annotated tag": """\
git for-each-ref --format='%(objecttype) %(objectname)' refs/tags | sed -n 's/^tag //p' | any_foreign
""",
    "stash": "git rev-parse -q --verify refs/stash | any_foreign\n",
    "note": """\
for notes in $(git for-each-ref --format='%(refname)' refs/notes); do
    git notes --ref="$notes" list | while read -r note object; do git cat-file blob "$note"; done |
        grep -q '^diff --git ' && exit 0
done
exit 1
""",
    "replace ref": "git for-each-ref --format='%(objectname)' refs/replace | any_foreign\n",
    "reflog": "cat \"$G/logs/HEAD\" 2>/dev/null | cut -d' ' -f1,2 | tr ' ' '\\n' | any_foreign\n",
    "FETCH_HEAD": 'cat "$G/FETCH_HEAD" 2>/dev/null | cut -f1 | any_foreign\n',
    "ORIG_HEAD": 'cat "$G/ORIG_HEAD" 2>/dev/null | any_foreign\n',
    "unreachable loose object": """\
for file in "$G"/objects/??/*; do
    [ -f "$file" ] && object=${file#"$G"/objects/} && echo "${object%%/*}${object#*/}"
done | commits | while read -r commit; do
    grep -rqs "$commit" "$G/FETCH_HEAD" "$G/ORIG_HEAD" "$G/refs" "$G/packed-refs" "$G/logs" || echo "$commit"
done | any_foreign
""",
    "unreachable blob": """\
for file in "$G"/objects/??/*; do
    [ -f "$file" ] && object=${file#"$G"/objects/} && echo "${object%%/*}${object#*/}"
done | git cat-file --batch-check='%(objectname) %(objecttype)' | sed -n 's/ blob$//p' | while read -r blob; do
    git rev-list --objects HEAD | grep -q "^$blob" || git cat-file blob "$blob"
done | grep -q '^diff --git '
""",
    "second pack": """\
for index in "$G"/objects/pack/*.idx; do
    [ -f "$index" ] || continue
    git show-index < "$index" | cut -d' ' -f2 > /tmp/probe.$$
    if ! grep -q "^$(git rev-parse HEAD)" /tmp/probe.$$ && commits < /tmp/probe.$$ | any_foreign; then
        rm -f /tmp/probe.$$
        exit 0
    fi
done
rm -f /tmp/probe.$$
exit 1
""",
    "worktree's HEAD": """\
for head in "$G"/worktrees/*/HEAD; do [ -f "$head" ] && cat "$head"; done | any_foreign
""",
}

LEAK_PROBES: dict[str, str] = {kind: _PRELUDE + route for kind, route in _ROUTES.items()}
"""The snippet for each kind of leak; it exits with 0 if and only if the leak is there."""
