"""What an agent changed, as the engine tells it, and the bytes of it out of the ended container.

The engine knows the paths from the layer that it keeps for the container, so neither time stamps nor git nor
any other program inside can hide one, and the work grows with the number of changes, not with the repository.
Its list is JSON: a name that is not UTF-8 arrives mangled there, so such names are read from the archive of
their folder instead. Where the engine can't read its own layer, or the agent put something else in the
repository's place, the whole tree is read and compared.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import AnyStr

from docker.errors import NotFound
from docker.models.containers import Container

from workspace.archive import kind, open_archive
from workspace.start_tree import GITLINK, StartTree

_DELETED = 2  # the engine's kinds of change: 0 changed, 1 added, 2 deleted
_FILES_A_REQUEST = 100
"""One more request costs about as much as passing over this many files in one that is under way."""


@dataclass(frozen=True)
class FinalFile:
    """A path as the agent left it."""

    mode: str
    """As git writes it: 100644, 100755 or 120000."""
    content: Path
    """A file on the host with the bytes (for a link: its target)."""


@dataclass
class Changes:
    """All that differs, or may differ, from the start tree."""

    files: dict[bytes, FinalFile] = field(default_factory=dict)
    deleted: set[bytes] = field(default_factory=set)
    ignored: set[bytes] = field(default_factory=set)
    """New files that the repository's ignore rules name."""
    special: set[bytes] = field(default_factory=set)
    """Pipes, sockets and devices, which git can't hold."""


class ChangeReader:
    """Reads the changes of one ended container."""

    def __init__(
        self,
        container: Container,
        start: StartTree,
        scratch: Path,
        rules: Callable[[Changes], Callable[[set[bytes]], set[bytes]]],
        workdir: str,
        *,
        native_diff: bool,
    ) -> None:
        """Nothing is read yet.

        Args:
            container: stopped; nothing writes to it any more.
            start: the start tree.
            scratch: an empty folder on the host for the contents.
            rules: called once, with the changed .gitignore files; what it returns tells which of some new
                paths are ignored.
            workdir: the repository, inside the container.
            native_diff: whether the engine reads changes from the container's own layer; where it compares
                time stamps instead, an agent can hide a change from it, and the whole tree is read.
        """
        self._container = container
        self._start = start
        self._scratch = scratch
        self._rules = rules
        self._workdir = workdir.rstrip("/")
        self._native_diff = native_diff
        self._changes = Changes()
        self._numbers = itertools.count()

    def read(self) -> Changes:
        """Read them all."""
        changes = self._changes
        root = kind(self._container, self._workdir)
        if root == "directory" and self._native_diff:
            self._read_listed(self._listed())
        elif root in {"directory", "link"}:
            changes.deleted = {path for path, entry in self._start.entries.items() if entry.mode != GITLINK}
            self._read_folder(b"", lambda path: path not in self._start.untracked)
            self._leave_out(self._rules(changes)(self._new(changes.files)))
        else:
            changes.deleted = set(self._start.entries)
        changes.deleted -= set(changes.files)
        return changes

    def _new(self, paths: Iterable[bytes]) -> set[bytes]:
        return {path for path in paths if path not in self._start.entries}

    def _leave_out(self, ignored: set[bytes]) -> None:
        self._changes.ignored |= ignored
        for path in ignored & set(self._changes.files):
            del self._changes.files[path]

    def _listed(self) -> dict[str, int]:
        """The engine's list: path relative to the repository, kind of change."""
        prefix = self._workdir + "/"
        listed: dict[str, int] = {}
        for change in self._container.diff() or []:
            relative = change["Path"].removeprefix(prefix)
            if change["Path"].startswith(prefix) and relative.partition("/")[0] != ".git":
                listed[relative] = change["Kind"]
        return listed

    def _read_listed(self, listed: dict[str, int]) -> None:
        with_children = {ancestor for path in listed for ancestor in _ancestors(path)}
        wanted: set[bytes] = set()
        for path, change in listed.items():
            if change == _DELETED:
                self._delete_below(path)
            elif path in with_children:
                self._delete_file(os.fsencode(path))
            elif "\ufffd" not in path and not self._is_still_a_folder(path):
                self._delete_below(path)  # it may stand where a folder was
                wanted.add(os.fsencode(path))
        rules = {path for path in wanted if path.rpartition(b"/")[2] == b".gitignore"}
        for path in rules:
            self._read_folder(path, {path}.__contains__)
        is_ignored = self._rules(self._changes)
        self._leave_out(is_ignored(self._new(wanted)))
        for folder, paths in self._grouped(wanted - rules - self._changes.ignored):
            self._read_folder(folder, paths.__contains__)
        self._read_mangled({path for path in listed if "\ufffd" in path}, is_ignored)

    def _delete_file(self, path: bytes) -> None:
        """A folder stands at this path now: what the start tree had there as a file is gone."""
        entry = self._start.entries.get(path)
        if entry is not None and entry.mode != GITLINK:
            self._changes.deleted.add(path)

    @cached_property
    def _start_folders(self) -> dict[bytes, int]:
        """The folders of the start tree with the number of files below each."""
        count: dict[bytes, int] = {}
        for path in self._start.entries:
            for ancestor in _ancestors(path):
                count[ancestor] = count.get(ancestor, 0) + 1
        return count

    def _is_still_a_folder(self, path: str) -> bool:
        """Whether a listed path without listed children is a folder whose time or mode changed, no more."""
        if os.fsencode(path) not in self._start_folders:
            return False
        return kind(self._container, f"{self._workdir}/{path}") == "directory"

    @cached_property
    def _start_by_shown_name(self) -> dict[str, list[bytes]]:
        """The start tree's paths below each name, names as the engine shows them."""
        below: dict[str, list[bytes]] = {}
        for path in self._start.entries:
            shown = _shown(path)
            for name in (shown, *_ancestors(shown)):
                below.setdefault(name, []).append(path)
        return below

    def _delete_below(self, path: str) -> None:
        self._changes.deleted.update(self._start_by_shown_name.get(_shown(path), ()))

    def _grouped(self, wanted: set[bytes]) -> Iterator[tuple[bytes, set[bytes]]]:
        """Split what is wanted into requests: a folder at once where that is less work than file by file.

        It is about speed alone: both ways read the same bytes. The repository's own folder is never read at
        once, because its `.git` would come along.
        """
        below: dict[bytes, set[bytes]] = {}
        for path in wanted:
            for folder in _ancestors(path):
                below.setdefault(folder, set()).add(path)
        ignored = len(self._changes.ignored)
        for folder in sorted(below, key=lambda name: name.count(b"/")):
            paths = below[folder] & wanted
            passed_over = self._start_folders.get(folder, 0) + ignored
            if len(paths) * _FILES_A_REQUEST > _FILES_A_REQUEST + passed_over:
                wanted = wanted - paths
                yield folder, paths
        for path in wanted:
            yield path, {path}

    def _read_mangled(self, mangled: set[str], is_ignored: Callable[[set[bytes]], set[bytes]]) -> None:
        shown = {_shown(path) for path in mangled}

        def is_meant(path: bytes) -> bool:
            name = _shown(path)
            return name in shown or any(ancestor in shown for ancestor in _ancestors(name))

        for path in shown:
            self._delete_below(path)
        before = set(self._changes.files)
        for folder in {path.partition("\ufffd")[0].rpartition("/")[0] for path in mangled}:
            self._read_folder(os.fsencode(folder), is_meant)
        self._leave_out(is_ignored(self._new(set(self._changes.files) - before)))

    # -- the bytes --------------------------------------------------------------------------------------

    def _read_folder(self, folder: bytes, is_meant: Callable[[bytes], bool]) -> None:
        """Read what is meant of a file or a folder; what is not there (any more) is passed over."""
        found: dict[bytes, FinalFile] = {}
        again: list[bytes] = []
        # "/." reads a folder's content, also through a link that stands in the repository's place
        path = f"{self._workdir}/{os.fsdecode(folder)}" if folder else f"{self._workdir}/."
        try:
            with open_archive(self._container, path) as archive:
                for member in archive:
                    name = _relative(folder, member.name)
                    if member.isdir() or name.partition(b"/")[0] == b".git" or not is_meant(name):
                        continue
                    if member.islnk():
                        first = found.get(_relative(folder, member.linkname))
                        if first is not None:
                            found[name] = first
                        else:
                            again.append(name)  # its bytes went by under a name that was not meant
                    elif member.isfile() or member.issym():
                        found[name] = self._take(archive, member)
                    else:
                        self._changes.special.add(name)
        except NotFound:
            return
        self._changes.files.update(found)
        for name in again:
            self._read_folder(name, {name}.__contains__)

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> FinalFile:
        content = self._scratch / str(next(self._numbers))
        if member.issym():
            content.write_bytes(os.fsencode(member.linkname))
            return FinalFile("120000", content)
        source = archive.extractfile(member)
        with content.open("wb") as target:
            if source is not None:
                shutil.copyfileobj(source, target)
        return FinalFile("100755" if member.mode & 0o100 else "100644", content)


def _shown(path: bytes | str) -> str:
    """A path as the engine's JSON shows it; runs of replaced bytes count as one, whoever replaced them."""
    text = path.decode("utf-8", "replace") if isinstance(path, bytes) else path
    return re.sub("\ufffd+", "\ufffd", text)


def _ancestors(path: AnyStr) -> Iterator[AnyStr]:
    """The folders that a path lies in, the nearest first; the repository itself is not one of them."""
    separator = b"/" if isinstance(path, bytes) else "/"
    while True:
        path = path.rpartition(separator)[0]
        if not path:
            return
        yield path


def _relative(folder: bytes, member: str) -> bytes:
    """A member's path relative to the repository; members are named from their archive's last component."""
    name = os.fsencode(member)
    if not folder:
        return name.removeprefix(b"./")
    parent = folder.rpartition(b"/")[0]
    return parent + b"/" + name if parent else name
