"""Repositories for the tests of preparation: one that leaks a fix in every way, and odd ones beside it.

Each leak is a commit (or a blob) of its own whose text holds FIX- and the leak's name, so that what is left of it
can be found by its bytes, whatever names it.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

from support.workspace_fixtures import RUN_ID, engine
from workspace.owner import labels
from workspace.prepare import PreparedImage, prepare

BEGIN = """
commit() { echo "$1" >"$2"; git add -A -f; git commit -q -m "${3:-$1}"; }
# fix NAME [PARENT]: a commit with the fix, on no branch
fix() {
    blob=$(echo "FIX-$1" | git hash-object -w --stdin)
    tree=$( (git ls-tree "$base"; printf '100644 blob %s\\tFIX-%s\\n' "$blob" "$1") | git mktree)
    git commit-tree -m "FIX-$1" -p "${2:-$base}" "$tree"
}
"""

LEAKY = (
    BEGIN
    + r"""
export GIT_AUTHOR_DATE='2020-03-01T00:00:00Z' GIT_COMMITTER_DATE='2020-03-01T00:00:00Z'
mkdir /lib-upstream; cd /lib-upstream; git init -q -b main
commit one lib.txt; pin=$(git rev-parse HEAD); commit FIX-submodule lib.txt
git init -q -b main /testbed; cd /testbed
printf '*.gen\n/local/\n' >.gitignore
commit first code.txt; commit second code.txt
git -c protocol.file.allow=always submodule --quiet add /lib-upstream third/lib
git -C third/lib checkout -q "$pin"; git add -A; git commit -q -m 'with a submodule'
git clone -q /lib-upstream "löb x"; git -C "löb x" checkout -q "$pin"; git -C "löb x" remote remove origin
git add "löb x" 2>/dev/null; git commit -q -m 'with a submodule of an odd name'
mkdir -p dir; printf 'kept\n' >dir/tracked.gen
commit third code.txt
base=$(git rev-parse HEAD)

git branch upstream "$(fix branch)"
GIT_AUTHOR_DATE='2019-01-01T00:00:00Z' GIT_COMMITTER_DATE='2019-01-01T00:00:00Z' fix early "$base~2" >/tmp/early
git branch early "$(cat /tmp/early)"
git update-ref refs/remotes/origin/main "$(fix remote)"
git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main
git tag v1 "$base~1"; git tag -a -m one v1.0 "$base~2"
git tag v2 "$(fix tag)"; git tag -a -m FIX-annotated v3 "$(fix annotated)"
git notes add -m FIX-note "$base"
git replace "$base~1" "$(fix replace "$base~2")"
git update-ref refs/bisect/bad "$(fix bisect)"; git update-ref refs/pull/7/head "$(fix pull)"
git pack-refs --all
git update-ref refs/heads/loose "$(fix loose)"
echo FIX-stash >>code.txt; git stash -q
fix dangling >/dev/null
echo FIX-blob | git hash-object -w --stdin >/dev/null
git repack -q -a -d
fix second-pack >/tmp/second
git rev-list --objects "$(cat /tmp/second)" "^$base" | git pack-objects -q .git/objects/pack/pack
git prune-packed -q
git worktree add -q --detach /review "$(fix worktree)"
git init -q --bare "/srv/a pool"; (export GIT_DIR='/srv/a pool'; echo FIX-alternate | git hash-object -w --stdin)
rm -rf "/srv/a pool/refs" "/srv/a pool/HEAD"
echo "/srv/a pool/objects" >.git/objects/info/alternates
git clone -q --mirror . /opt/mirror.git
git clone -q --no-local --depth 1 --branch upstream "file:///testbed" /opt/latest
git clone -q . /opt/borrowing; rm -f /opt/borrowing/nothing
# a shallow clone of a later commit, of which our repository has nothing
git clone -q --no-local --depth 1 --branch main "file:///testbed" /opt/later; (cd /opt/later
    for name in one two three; do echo $name >$name; done; echo FIX-later >>code.txt; git add -A
    git commit -q --amend -m FIX-later; git reflog expire --expire=all --all; git gc -q --prune=now)
git init -q /opt/unrelated; (cd /opt/unrelated; commit other a.txt)
echo "$base $(fix graft)" >.git/info/grafts
git reset -q --hard "$(fix reflog)"; git reset -q --hard "$base"
echo "$(fix fetch) branch 'main' of example.org" >.git/FETCH_HEAD
fix orig >.git/ORIG_HEAD; fix merge >.git/MERGE_HEAD
git config branch.main.description FIX-description
git clone -q --bare . /srv/linked.git; mv /srv/linked.git/objects /srv/store; ln -s /srv/store /srv/linked.git/objects
git commit-graph write --reachable 2>/dev/null
git multi-pack-index write
printf '#!/bin/sh\necho FIX-hook\n' >.git/hooks/pre-commit
rm -f .git/MERGE_HEAD
export GIT_AUTHOR_NAME=SWE-bench GIT_AUTHOR_EMAIL=setup@swebench.config
export GIT_COMMITTER_NAME=SWE-bench GIT_COMMITTER_EMAIL=setup@swebench.config
commit pinned setup.cfg SWE-bench
echo FIX-message >.git/COMMIT_EDITMSG
mkdir local; echo built >local/output; echo other >stray.txt
rm -rf /lib-upstream /tmp/early /tmp/second
export GIT_NO_REPLACE_OBJECTS=1 GIT_GRAFT_FILE=/dev/null
echo "$base $(git rev-parse HEAD) $(git rev-list --objects HEAD | wc -l) $(git rev-list --count HEAD)"
"""
)

ODD = (
    BEGIN
    + r"""
mkdir /odd; exec >/odd/bases
repository() { git init -q -b main "$1"; cd "$1"; commit first a; commit second a; base=$(git rev-parse HEAD); }
repository /odd/whole; echo "whole $base"
repository /odd/named; commit FIX b SWE-bench; echo "named $base"
repository /odd/ahead; commit setup b SWE-bench; commit FIX c; echo "ahead $base"
repository /odd/detached; commit later b; git checkout -q --detach "$base"; echo "detached $base"
repository /odd/unborn; git checkout -q --orphan nothing; git rm -rqf .; echo "unborn $base"
(cd /odd/whole; git clone -q --no-local --depth 1 file:///odd/whole /odd/shallow)
mkdir /odd/none
cd /odd/whole; base=$(git rev-parse HEAD); git worktree add -q /odd/linked -b linked "$base"
git config uploadpack.allowFilter true
git clone -q --no-local --filter=blob:none --no-checkout file:///odd/whole /odd/partial
repository /odd/corrupt; commit more b; base=$(git rev-parse HEAD); chmod -R u+w .git
tree=$(git rev-parse HEAD~1^{tree}); rm ".git/objects/$(echo "$tree" | cut -c1-2)/$(echo "$tree" | cut -c3-)"
echo "corrupt $base"
"""
)


def loose(kind: str, content: bytes) -> tuple[str, dict[str, bytes]]:
    """An object's name, and the file that holds it."""
    data = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.sha1(data).hexdigest()  # noqa: S324 - git's own
    return name, {f".git/objects/{name[:2]}/{name[2:]}": zlib.compress(data)}


def planted(start_commit: str, tree: str) -> dict[str, dict[str, bytes]]:
    """Files below /testbed that must not pass verification, by what they are."""
    start = f"{start_commit}\n".encode()
    who = "Ada <ada@example.org> 1600000000 +0000"
    text = f"tree {tree}\nparent {start_commit}\nauthor {who}\ncommitter {who}\n\nfix\n"
    later, commit = loose("commit", text.encode())
    return {
        "a blob": loose("blob", b"FIX")[1],
        "a commit": commit,
        "HEAD moved on": {**commit, ".git/refs/heads/main": f"{later}\n".encode()},
        "HEAD detached ahead": {**commit, ".git/HEAD": f"{later}\n".encode()},
        "a tag": {".git/refs/tags/v1": start},
        "packed refs": {".git/packed-refs": start_commit.encode() + b" refs/remotes/origin/main\n"},
        "a broken ref": {".git/refs/heads/fix": b"FIX\n"},
        "FETCH_HEAD": {".git/FETCH_HEAD": start},
        "ORIG_HEAD": {".git/ORIG_HEAD": start},
        "a reflog": {".git/logs/HEAD": b"x"},
        "a graft": {".git/info/grafts": start},
        "a shallow file": {".git/shallow": start},
        "an alternate": {".git/objects/info/alternates": b"/opt/objects\n"},
        "a worktree": {".git/worktrees/x/HEAD": start},
        "a hook": {".git/hooks/pre-commit": b"x"},
        "a line break in a name": {".git/index\nfix": b"FIX"},
        "a changed file": {"code.txt": b"FIX\n"},
        "a blob in the submodule": {f"third/lib/{name}": data for name, data in loose("blob", b"FIX")[1].items()},
        "another clone": {
            "opt/x/HEAD": b"ref: refs/heads/main\n",
            "opt/x/refs/heads/main": start,
            "opt/x/config": b"[core]\nbare = true\n",
            "opt/x/objects/info/alternates": b"/testbed/.git/objects\n",
        },
        "a pack without a repository": {"opt/pack-1.pack": b"PACK"},
        "a tag in the submodule": {"third/lib/.git/refs/tags/v1": start},
    }


ALL_BYTES = """
for repository in /testbed /testbed/third/lib "/testbed/löb x"; do
    cd "$repository"; git cat-file --batch-all-objects --batch; find .git -type f -exec cat {} +
done
"""
FIND_FIX = f"({ALL_BYTES}) >/tmp/all; grep -a -o 'FIX-[a-z-]*' /tmp/all | sort -u; rm /tmp/all"
ON_DISK = "grep -r -a -l FIX- /opt /srv /review /root /tmp /home /var/tmp /testbed 2>/dev/null || true"

KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import workspace.prepare
from support.prepare_world import prepare_in_a_process
def stop(*arguments, **names):
    print("here", flush=True)
    time.sleep(1000)
workspace.prepare.{function} = stop
prepare_in_a_process(({source!r}, {base!r}, {locks!r}))
"""


def prepare_in_a_process(arguments: tuple[str, str, str]) -> tuple[PreparedImage, list[str]]:
    """Prepare an image; the arguments are its name, the base commit and the folder for locks."""
    source, base, locks = arguments
    said: list[str] = []
    with engine() as client:
        image = prepare(
            client, source, instance_id=f"tests__once-{source[-12:]}", base_commit=base, locks=Path(locks),
            labels=labels(RUN_ID), say=said.append, workdir="/odd/whole",
        )  # fmt: skip
    return image, said
