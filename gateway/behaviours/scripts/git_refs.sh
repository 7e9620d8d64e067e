# Everything that names an object.
refs() { git for-each-ref --format='%(objectname) %(*objectname)' "$@" | leads_out; }
other_refs() {
    git for-each-ref --format='%(refname) %(objectname) %(*objectname)' \
        | grep -vE '^refs/(heads|remotes|tags|notes|replace|stash)' | leads_out
}
in_files() { cat "$@" 2> /dev/null | leads_out; }
under() { find "$@" -type f -exec cat {} + 2> /dev/null | leads_out; }
pseudo_refs() {
    find "$dot" "$common" -maxdepth 1 -type f ! -name FETCH_HEAD ! -name ORIG_HEAD ! -name HEAD ! -name index \
        ! -name packed-refs ! -name config -exec cat {} + | leads_out
}
worktrees() {
    for tree in "$common"/worktrees/*/; do
        under "$tree" && return 0
        GIT_INDEX_FILE="$tree/index" git ls-files -s | leads_out && return 0
    done
    return 1
}
relative_names() {
    for name in '@{u}' '@{push}' '@{-1}' 'HEAD@{1}' 'HEAD@{2}' 'stash@{0}'; do git rev-parse -q "$name"; done | leads_out
}

probe branch refs refs/heads
probe remote-branch refs refs/remotes
probe tag refs refs/tags
probe stash refs refs/stash
probe note refs refs/notes
probe replace refs refs/replace
probe other-ref other_refs
probe packed-refs in_files "$common/packed-refs" "$common/info/refs"
probe loose-refs under "$common/refs"
probe log-all leads_out < <(git log --all --format=%H)
probe log-reflog leads_out < <(git log --reflog --format=%H)
probe reflog leads_out < <(git log -g --all --format='%H %gs')
probe reflog-files under "$common/logs" "$dot/logs"
probe fetch-head in_files "$dot/FETCH_HEAD" "$common/FETCH_HEAD"
probe orig-head in_files "$dot/ORIG_HEAD" "$common/ORIG_HEAD"
probe pseudo-ref pseudo_refs
probe interrupted under "$dot"/rebase-merge "$dot"/rebase-apply "$dot"/sequencer "$dot"/rr-cache
probe relative-name relative_names
probe worktree worktrees
probe index leads_out < <(git ls-files -s; git ls-files --resolve-undo)
probe graft in_files "$common/info/grafts" "$common/shallow"
probe described leads_out < <(git describe --all --contains --always HEAD | cut -d~ -f1 | git rev-parse --stdin)
