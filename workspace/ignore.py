"""Which new paths does the repository ignore? Git's own rules, asked of the host's git.

The rules are the `.gitignore` files as the agent left them and the image's own `info/exclude`; what the agent
wrote below `.git` or configured is not one of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from workspace.changes import Changes
from workspace.start_tree import StartTree, git


class IgnoreRules:
    """The rules of one final tree."""

    def __init__(self, git_dir: Path, start: StartTree, changes: Changes, folder: Path) -> None:
        """Lay out the rule files in a folder that holds nothing else.

        Args:
            git_dir: a repository whose `info/exclude` is the image's.
            start: the start tree.
            changes: what the agent left.
            folder: not there yet.
        """
        self._git_dir = git_dir
        self._folder = folder
        folder.mkdir()
        for path, entry in start.entries.items():
            # git follows no link for its rules
            if _is_rule(path) and entry.mode != "120000" and path not in changes.deleted:
                _write(folder, path, start.read(entry.object_id))
        for path, file in changes.files.items():
            if _is_rule(path) and file.mode != "120000":
                _write(folder, path, file.content.read_bytes())

    def __call__(self, paths: set[bytes]) -> set[bytes]:
        """Those of some paths, none of them tracked, that are ignored."""
        return _ask(self._git_dir, self._folder, paths)


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


def _is_rule(path: bytes) -> bool:
    return path.rpartition(b"/")[2] == b".gitignore"


def _write(folder: Path, path: bytes, content: bytes) -> None:
    target = folder / os.fsdecode(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
