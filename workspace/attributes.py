"""Repositories that store a file otherwise than it lies on disk: line ends, identifiers, encodings.

A patch carries what git stores. For a file that the start commit tracks under such an attribute, the stored form
of the final bytes is taken where it gives exactly those bytes back; anywhere else the bytes themselves are, so
nothing is normalised away. The attributes are the start commit's, never what the agent made of them, and no
filter program is ever run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from workspace.changes import FinalFile
from workspace.start_tree import StartTree
from workspace.tree import ancestors, git

_CONVERTING = ("text", "eol", "crlf", "ident", "working-tree-encoding")


class Conversions:
    """The conversions of one start tree."""

    def __init__(self, git_dir: Path, start: StartTree, folder: Path) -> None:
        """Nothing is read yet; the folder, not there yet, takes the start commit's attribute files."""
        self._git_dir = git_dir
        self._start = start
        self._folder = folder
        folder.mkdir()

    def stored_as(self, paths: Iterable[bytes], files: Mapping[bytes, FinalFile]) -> dict[bytes, str]:
        """The object ids of the stored form, for those of some tracked paths where that is exact.

        Args:
            paths: tracked by the start commit.
            files: the final bytes of each.
        """
        found = {}
        for path in self._converted(paths):
            content = files[path].content.read_bytes()
            known = self._start.entries[path].object_id
            if self._on_disk(path, known) == content:
                found[path] = known  # only touched
                continue
            object_id = self._stored(path, content)
            if object_id and self._on_disk(path, object_id) == content:
                found[path] = object_id
        return found

    def _converted(self, paths: Iterable[bytes]) -> set[bytes]:
        paths = set(paths)
        if not self._lay_out({b"", *(ancestor for path in paths for ancestor in ancestors(path))}):
            return set()
        feed = b"".join(path + b"\0" for path in paths)
        fields = self._git("check-attr", "-z", "--stdin", *_CONVERTING, stdin=feed).split(b"\0")[:-1]
        rows = zip(fields[::3], fields[2::3], strict=True)
        return {path for path, value in rows if value not in (b"unspecified", b"unset")}

    def _lay_out(self, places: Iterable[bytes]) -> bool:
        """Write the attribute files of some folders; False where there is none."""
        any_there = False
        for place in places:
            path = place + b"/.gitattributes" if place else b".gitattributes"
            entry = self._start.entries.get(path)
            if entry is not None and entry.mode != "120000":
                target = self._folder / os.fsdecode(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._start.read(entry.object_id))
                any_there = True
        return any_there

    def _stored(self, path: bytes, content: bytes) -> str:
        """The object of a path's stored form; empty where the bytes are none of the path's encoding."""
        words = ("hash-object", "-w", "--stdin", "--path", os.fsdecode(path))
        return self._git(*words, stdin=content, ok=(0, 128)).decode().strip()

    def _on_disk(self, path: bytes, object_id: str) -> bytes:
        return self._git("cat-file", "--filters", "--path", os.fsdecode(path), object_id)

    def _git(self, *arguments: str, stdin: bytes | None = None, ok: Iterable[int] = (0,)) -> bytes:
        return git(self._git_dir, *arguments, stdin=stdin, work_tree=self._folder, ok=ok)
