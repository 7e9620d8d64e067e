"""What an agent changed, read with its bytes from the ended container.

The engine keeps a container's changes in a layer of their own, and that layer is read: neither time stamps nor git
nor any other program in the container can hide a change from it, and the work grows with the changes, not with the
repository. (The engine's own list of changes compares sizes and time stamps, and misses an edit that keeps both.)
If the layer can't be read, the whole final tree is read instead and compared by content.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from docker.errors import APIError, NotFound
from docker.models.containers import Container

from workspace.container_files import client_of, kind, open_archive
from workspace.host_git import GITLINK, LINK
from workspace.start_tree import StartTree
from workspace.throwaway import throwaway

_LAYER = "/clawbench-layer"
_DELETED = 2  # as the engine's list of changes has it
MAX_FILE = 64 * 1024 * 1024
"""The most bytes of one file that are exported: git needs several times as much memory for a patch."""
MAX_NEW_FILES = 200_000
"""The most files that are exported of those that the start commit does not track."""


@dataclass(frozen=True)
class FinalFile:
    """A path as the agent left it."""

    mode: str
    """As git writes it: 100644, 100755 or 120000."""
    content: Path
    """A file on the host with its bytes; for a link, its target."""


@dataclass
class Changes:
    """Everything that differs, or may differ, from the start tree."""

    files: dict[bytes, FinalFile] = field(default_factory=dict)
    deleted: set[bytes] = field(default_factory=set)
    special: set[bytes] = field(default_factory=set)
    """Pipes, sockets and devices, which git can't hold."""
    excessive: set[bytes] = field(default_factory=set)
    """Files that are too large, or beyond the number of new files: they count as unchanged."""
    of_git: set[bytes] = field(default_factory=set)
    """Files in the `.git` of other repositories."""


class ChangeReader:
    """Reads the changes of one ended container."""

    def __init__(self, container: Container, start: StartTree, scratch: Path, workdir: str) -> None:
        """Read nothing yet.

        Args:
            container: ended, so that nothing writes to it any more.
            start: the start tree.
            scratch: an empty folder on the host for the contents of files.
            workdir: the repository's folder inside the container.
        """
        self._container = container
        self._start = start
        self._scratch = scratch
        self._workdir = workdir.rstrip("/")
        self._changes = Changes()
        self._folders: set[bytes] = set()
        self._whiteouts: set[bytes] = set()
        self._taken: set[bytes] = set()
        self._numbers = itertools.count()
        self._new = 0

    def read(self) -> Changes:
        """Read all changes."""
        layer = _layer_of(self._container)
        if layer is None or not self._read_layer(layer):
            self._read_everything()
        self._note_sockets()
        self._changes.deleted -= self._changes.files.keys() | self._changes.excessive
        return self._changes

    def _note_sockets(self) -> None:
        """Note the sockets, which the engine leaves out of archives. Only its list of changed paths has them."""
        known = self._taken | self._folders
        for row in self._container.diff() or ():
            name = str(row["Path"])
            path = os.fsencode(name.removeprefix(f"{self._workdir}/"))
            is_here = name.startswith(f"{self._workdir}/") and row["Kind"] != _DELETED
            # the engine garbles a name that is not UTF-8
            if is_here and "\ufffd" not in name and not is_of_git(path) and path not in known:
                self._changes.special.add(path)
                if path in self._start.entries:
                    self._changes.deleted.add(path)

    def _read_layer(self, layer: str) -> bool:
        """Read the container's own layer; returns False if that is not possible."""
        # the layer is mounted into a container that is never started
        client, image = client_of(self._container), self._container.attrs["Image"]
        with (
            suppress(APIError),
            throwaway(client, image, self._container.labels, {}, mounts={_LAYER: layer}) as holder,
        ):
            place = _LAYER + self._workdir
            root = kind(holder, place)
            if root == "link":
                return False
            if root == "other":  # the whole folder was removed, or a file stands in its place
                self._changes.deleted = set(self._start.entries)
            elif root == "directory":
                self._take_all(holder, place)
                return self._find_hidden()
            return True
        return False

    def _read_everything(self) -> None:
        """Read the whole final tree, even through a link in place of the repository's folder."""
        self._changes = Changes(deleted=set(self._start.entries))
        self._folders.clear()
        self._whiteouts.clear()
        self._taken.clear()
        self._new = 0
        with suppress(NotFound):
            self._take_all(self._container, f"{self._workdir}/.")
        entries = self._start.entries
        self._changes.deleted -= {path for path in self._folders & set(entries) if entries[path].mode == GITLINK}
        for path in self._start.untracked & set(self._changes.files):
            del self._changes.files[path]  # most likely the image's own

    def _take_all(self, container: Container, place: str) -> None:
        """Take every file below a place, except for those of the repository's own `.git`."""
        links: dict[bytes, bytes] = {}
        with open_archive(container, place) as archive:
            for member in archive:
                path = os.fsencode(member.name).partition(b"/")[2]
                if not path:
                    continue
                if member.isdir():
                    self._folders.add(path)
                elif member.islnk():
                    links[path] = os.fsencode(member.linkname).partition(b"/")[2]
                else:
                    self._take(archive, path, member)
        for path, first in links.items():
            self._take_link(path, first)
        self._take_links_to_git(container, place, links)
        self._note_deleted()

    def _note_deleted(self) -> None:
        """Note what the start tree had where there is something else now, or nothing."""
        entries = self._start.entries
        for path in self._taken:
            self._changes.deleted |= entries.below(path)
        for path in self._folders:
            entry = entries.get(path)
            if entry is not None and entry.mode != GITLINK:
                self._changes.deleted.add(path)

    def _take(self, archive: tarfile.TarFile, path: bytes, member: tarfile.TarInfo) -> None:
        """Take anything but a folder or a second name of a file (a hard link)."""
        self._taken.add(path)
        if member.ischr() and (member.devmajor, member.devminor) == (0, 0):
            self._whiteouts.add(path)
        elif is_of_git(path):
            self._note_of_git(path)
        elif member.isfile() or member.issym():
            is_new = path not in self._start.entries
            if member.size > MAX_FILE or (is_new and self._new >= MAX_NEW_FILES):
                self._changes.excessive.add(path)
                return
            self._new += is_new
            self._changes.files[path] = self._content(archive, member)
        else:
            self._changes.special.add(path)

    def _take_link(self, path: bytes, first: bytes) -> None:
        """Take a second name of a file, a pipe or a whiteout."""
        if is_of_git(path):
            self._note_of_git(path)
            return
        if first in self._changes.files:
            self._changes.files[path] = self._changes.files[first]
        elif first in self._changes.special:
            self._changes.special.add(path)
        elif first in self._changes.excessive:
            self._changes.excessive.add(path)
        self._taken.add(path)

    def _take_links_to_git(self, container: Container, place: str, links: Mapping[bytes, bytes]) -> None:
        """Take second names of files in a `.git`, by reading that once more: nothing of it was kept."""
        wanted: dict[bytes, bytes] = {}
        for path, first in links.items():
            if is_of_git(first) and first not in self._whiteouts and not is_of_git(path):
                wanted.setdefault(first, path)
        # the whole `.git`, because the engine finds no single file whose name is not UTF-8
        for root in sorted({_git_folder(first) for first in wanted}):
            with open_archive(container, f"{place}/{os.fsdecode(root)}") as archive:
                for member in archive:
                    inner = os.fsencode(member.name).partition(b"/")[2]
                    first = root + b"/" + inner if inner else root
                    if first in wanted:
                        self._take(archive, wanted[first], member)
        for path, first in links.items():
            if first in wanted and wanted[first] != path:
                self._take_link(path, wanted[first])

    def _note_of_git(self, path: bytes) -> None:
        if path.partition(b"/")[0] != b".git":
            self._changes.of_git.add(path)

    def _content(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> FinalFile:
        content = self._scratch / str(next(self._numbers))
        if member.issym():
            content.write_bytes(os.fsencode(member.linkname))
            return FinalFile(LINK, content)
        source = archive.extractfile(member)
        with content.open("wb") as target:
            if source is not None:
                shutil.copyfileobj(source, target)
        return FinalFile("100755" if member.mode & 0o100 else "100644", content)

    def _find_hidden(self) -> bool:
        """Find the folders that were removed and made again: everything that the start tree had in them is gone.

        The layer marks them in a way that only the engine's host can read. So the final tree is asked for a
        path of the start tree that the layer does not mention: only in such a folder is it missing.

        Returns:
            False if a folder has no such path that the engine can be asked for, as its name is not UTF-8.
        """
        entries = self._start.entries
        mentioned = {*self._changes.deleted, *self._taken, *self._folders}
        for folder in sorted({b"", *self._folders}, key=len):
            others = [path for path in entries.children(folder) if path not in mentioned]
            if not others:
                continue
            asked = next((path for path in others if _is_utf8(path)), None)
            if asked is None:
                return False
            if kind(self._container, f"{self._workdir}/{os.fsdecode(asked)}") is None:
                hidden = entries.below(folder) - set(self._changes.files)
                self._changes.deleted |= hidden
                mentioned |= hidden
        return True


def _is_utf8(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_of_git(path: bytes) -> bool:
    """Whether a path is, or lies in, a `.git`; git ignores the case of its letters."""
    return any(part.lower() == b".git" for part in path.split(b"/"))


def _git_folder(path: bytes) -> bytes:
    """The outermost `.git` that a path lies in."""
    parts = path.split(b"/")
    depth = next(number for number, part in enumerate(parts, 1) if is_of_git(part))
    return b"/".join(parts[:depth])


def _layer_of(container: Container) -> str | None:
    """Where the engine's host keeps the container's own layer; None if it can't be read as files."""
    container.reload()
    driver = container.attrs.get("GraphDriver") or {}
    if driver.get("Name") != "overlay2":
        return None
    client = client_of(container)
    status = dict(client.info().get("DriverStatus") or [])
    # otherwise files of the layer may be incomplete, or its folders lie elsewhere than their names say
    if status.get("Native Overlay Diff") != "true" or status.get("Using metacopy", "false") == "true":
        return None
    upper = (driver.get("Data") or {}).get("UpperDir")
    return str(upper) if upper else None
