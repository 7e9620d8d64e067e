"""What a repository's own rules say of changed files: which are ignored, and how git would store them.

Git's rules are asked of the host's git. They are the `.gitignore` files as the agent left them, the image's own
`info/exclude` and the start commit's `.gitattributes`; nothing that the agent wrote below `.git` or configured
counts, and no filter program is ever run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from workspace.changes import Changes, FinalFile
from workspace.host_git import LINK, ancestors, git
from workspace.start_tree import StartTree

_CONVERTING = ("text", "eol", "crlf", "ident", "working-tree-encoding")
"""The attributes under which git stores other bytes than those on disk."""


def ignored(git_dir: Path, start: StartTree, changes: Changes, paths: set[bytes], folder: Path) -> set[bytes]:
    """The new paths that the repository ignores.

    Args:
        git_dir: a repository whose `info/exclude` is the image's.
        start: the start tree.
        changes: what the agent left.
        paths: untracked ones.
        folder: takes the rule files; must not exist yet.
    """

    def rules(path: bytes) -> bytes | None:
        if file := changes.files.get(path):
            return None if file.mode == LINK else file.content.read_bytes()  # git follows no link for its rules
        return None if path in changes.deleted else start.read(path)

    _write_rules(folder, b".gitignore", paths, rules)
    return _ignored(git_dir, folder, paths)


def matching(git_dir: Path, patterns: Sequence[str], paths: set[bytes], folder: Path) -> set[bytes]:
    """The new paths that .gitignore patterns, taken from the repository's root, match.

    Args:
        git_dir: any repository; its `info/exclude` does not count.
        patterns: one rule each.
        paths: untracked ones.
        folder: must not exist yet.
    """
    empty, work_tree = folder / "empty.git", folder / "tree"
    git(git_dir, "init", "--quiet", "--bare", "--template=", str(empty))
    _write_rules(work_tree, b".gitignore", (), lambda _: "\n".join(patterns).encode() + b"\n")
    return _ignored(empty, work_tree, paths)


def stored_forms(
    git_dir: Path, start: StartTree, paths: Iterable[bytes], files: Mapping[bytes, FinalFile], folder: Path
) -> dict[bytes, str]:
    """The ids of the objects by which git stores files that it converts: line ends, identifiers, encodings.

    A patch carries what git stores. The stored form counts only where it gives exactly the final bytes back, so
    that nothing is normalised away; other files are missing from the result.

    Args:
        git_dir: the repository; new objects are written to it.
        start: the start tree, whose attributes count, never what the agent made of them.
        paths: tracked by the start commit.
        files: the final bytes of each.
        folder: takes the attribute files; must not exist yet.
    """
    if not _write_rules(folder, b".gitattributes", paths, start.read):
        return {}

    def ask(*words: str, stdin: bytes | None = None, ok: Iterable[int] = (0,)) -> bytes:
        return git(git_dir, *words, stdin=stdin, work_tree=folder, ok=ok)

    def on_disk(path: bytes, object_id: str) -> bytes:
        return ask("cat-file", "--filters", "--path", os.fsdecode(path), object_id)

    feed = b"".join(path + b"\0" for path in paths)
    fields = ask("check-attr", "-z", "--stdin", *_CONVERTING, stdin=feed).split(b"\0")[:-1]
    rows = zip(fields[::3], fields[2::3], strict=True)
    found = {}
    for path in {path for path, value in rows if value not in (b"unspecified", b"unset")}:
        content = files[path].content.read_bytes()
        known = start.entries[path].object_id
        if on_disk(path, known) == content:
            found[path] = known  # only touched
            continue
        words = ("hash-object", "-w", "--stdin", "--path", os.fsdecode(path))
        # 128: the bytes are not valid in the file's encoding
        object_id = ask(*words, stdin=content, ok=(0, 128)).decode().strip()
        if object_id and on_disk(path, object_id) == content:
            found[path] = object_id
    return found


def _write_rules(
    folder: Path, name: bytes, paths: Iterable[bytes], content_of: Callable[[bytes], bytes | None]
) -> bool:
    """Write the rule files of all folders that some paths lie in; returns whether there is any."""
    folder.mkdir(parents=True)
    for place in {b"", *(ancestor for path in paths for ancestor in ancestors(path))}:
        path = place + b"/" + name if place else name
        if (content := content_of(path)) is not None:
            target = folder / os.fsdecode(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return any(folder.iterdir())


def _ignored(git_dir: Path, work_tree: Path, paths: Iterable[bytes]) -> set[bytes]:
    # "./" keeps a name that begins with a colon from being taken for a pattern
    feed = b"".join(b"./" + path + b"\0" for path in paths)
    if not feed:
        return set()
    # exit code 1: none is ignored
    told = git(git_dir, "check-ignore", "-z", "--stdin", "--no-index", stdin=feed, work_tree=work_tree, ok=(0, 1))
    return {path.removeprefix(b"./") for path in told.split(b"\0")[:-1]}
