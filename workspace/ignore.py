"""Which new paths does the repository ignore? Git's own rules, asked of the host's git.

The rules are the `.gitignore` files as the agent left them and the image's own `info/exclude`; what the agent
wrote below `.git` or configured is not one of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from workspace.changes import Changes
from workspace.start_tree import StartTree
from workspace.tree import ancestors, git


def ignored(git_dir: Path, start: StartTree, changes: Changes, paths: set[bytes], folder: Path) -> set[bytes]:
    """Those of some paths that the repository ignores.

    Args:
        git_dir: a repository whose `info/exclude` is the image's.
        start: the start tree.
        changes: what the agent left.
        paths: none of them tracked.
        folder: not there yet; takes the rule files.
    """
    folder.mkdir()
    for place in {b"", *(ancestor for path in paths for ancestor in ancestors(path))}:
        path = place + b"/.gitignore" if place else b".gitignore"
        file, entry = changes.files.get(path), start.entries.get(path)
        # git follows no link for its rules
        if file is not None and file.mode != "120000":
            _write(folder, path, file.content.read_bytes())
        elif file is None and entry is not None and entry.mode != "120000" and path not in changes.deleted:
            _write(folder, path, start.read(entry.object_id))
    return _ask(git_dir, folder, paths)


def matching(git_dir: Path, patterns: Sequence[str], paths: set[bytes], folder: Path) -> set[bytes]:
    """Those of some paths that .gitignore-style patterns from the repository's root match.

    Args:
        git_dir: any repository; its `info/exclude` does not count.
        patterns: one rule each.
        paths: none of them tracked.
        folder: not there yet.
    """
    folder.mkdir()
    empty = folder / "empty.git"
    git(git_dir, "init", "--quiet", "--bare", "--template=", str(empty))
    work_tree = folder / "tree"
    _write(work_tree, b".gitignore", "\n".join(patterns).encode() + b"\n")
    return _ask(empty, work_tree, paths)


def _ask(git_dir: Path, work_tree: Path, paths: Iterable[bytes]) -> set[bytes]:
    # "./" keeps a name that begins with a colon from being read as a pattern
    feed = b"".join(b"./" + path + b"\0" for path in paths)
    if not feed:
        return set()
    # 1 says that none is ignored
    told = git(git_dir, "check-ignore", "-z", "--stdin", "--no-index", stdin=feed, work_tree=work_tree, ok=(0, 1))
    return {path.removeprefix(b"./") for path in told.split(b"\0")[:-1]}


def _write(folder: Path, path: bytes, content: bytes) -> None:
    target = folder / os.fsdecode(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
