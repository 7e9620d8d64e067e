"""What an agent changed, and the bytes of it, out of the ended container.

The engine keeps a container's changes in a layer of its own, and it is that layer which is read: neither time
stamps nor git nor any other program inside can hide a change from it, and the work grows with the changes, not
with the repository. (The engine's own list of changes compares sizes and time stamps: an edit that keeps both
is not in it.) Where the layer can't be had, the whole final tree is read and compared by content instead.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from docker.errors import APIError, NotFound
from docker.models.containers import Container

from workspace.archive import client_of, kind, open_archive
from workspace.start_tree import StartTree
from workspace.tree import GITLINK

_LAYER = "/clawbench-layer"


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
    special: set[bytes] = field(default_factory=set)
    """Pipes, sockets and devices, which git can't hold."""
    of_git: set[bytes] = field(default_factory=set)
    """What lies in the `.git` of other repositories."""


class ChangeReader:
    """Reads the changes of one ended container."""

    def __init__(self, container: Container, start: StartTree, scratch: Path, workdir: str) -> None:
        """Nothing is read yet.

        Args:
            container: ended; nothing writes to it any more.
            start: the start tree.
            scratch: an empty folder on the host for the contents.
            workdir: the repository, inside the container.
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

    def read(self) -> Changes:
        """Read them all."""
        layer = _layer_of(self._container)
        if layer is None or not self._read_layer(layer):
            self._read_everything()
        self._changes.deleted -= set(self._changes.files)
        return self._changes

    def _read_layer(self, layer: str) -> bool:
        """Read the container's own layer, through a container that is never started; False where that can't be."""
        with suppress(APIError), _holding(self._container, layer) as holder:
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
        """Read the whole final tree, also where a link stands in the repository's place."""
        self._changes = Changes(deleted=set(self._start.entries))
        self._folders.clear()
        self._whiteouts.clear()
        self._taken.clear()
        with suppress(NotFound):
            self._take_all(self._container, f"{self._workdir}/.")
        entries = self._start.entries
        self._changes.deleted -= {path for path in self._folders & set(entries) if entries[path].mode == GITLINK}
        for path in self._start.untracked & set(self._changes.files):
            del self._changes.files[path]  # the image's own, as far as can be told

    def _take_all(self, container: Container, place: str) -> None:
        """Take every file at a place but those of the repository's own `.git`."""
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
        """What the start tree had where something else is now, or nothing."""
        entries = self._start.entries
        entries.load(self._taken | self._folders)
        for path in self._taken:
            self._changes.deleted |= entries.below(path)  # gone, or a folder may have been there
        for path in self._folders:
            entry = entries.get(path)
            if entry is not None and entry.mode != GITLINK:
                self._changes.deleted.add(path)

    def _take(self, archive: tarfile.TarFile, path: bytes, member: tarfile.TarInfo) -> None:
        """Take what is no folder and no second name."""
        self._taken.add(path)
        if member.ischr() and (member.devmajor, member.devminor) == (0, 0):
            self._whiteouts.add(path)
        elif is_of_git(path):
            self._note_of_git(path)
        elif member.isfile() or member.issym():
            self._changes.files[path] = self._content(archive, member)
        else:
            self._changes.special.add(path)

    def _take_link(self, path: bytes, first: bytes) -> None:
        """Take a second name of a file, a pipe or a whiteout, all of which may have several."""
        if is_of_git(path):
            self._note_of_git(path)
            return
        if first in self._changes.files:
            self._changes.files[path] = self._changes.files[first]
        elif first in self._changes.special:
            self._changes.special.add(path)
        self._taken.add(path)

    def _take_links_to_git(self, container: Container, place: str, links: Mapping[bytes, bytes]) -> None:
        """Take second names whose first one lies in a `.git`, of which nothing was kept: read that once more."""
        wanted: dict[bytes, bytes] = {}
        for path, first in links.items():
            if is_of_git(first) and first not in self._whiteouts and not is_of_git(path):
                wanted.setdefault(first, path)
        # the whole `.git`: the engine finds no single file whose name is not UTF-8
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
            return FinalFile("120000", content)
        source = archive.extractfile(member)
        with content.open("wb") as target:
            if source is not None:
                shutil.copyfileobj(source, target)
        return FinalFile("100755" if member.mode & 0o100 else "100644", content)

    def _find_hidden(self) -> bool:
        """Folders that were removed and made again hide all that the start tree had in them.

        The layer marks them where only its host can read it, so the final tree is asked: one path of the start
        tree that the layer says nothing of is there in every folder but those.

        Returns:
            False where it can't be told, because the engine takes no name of those that could be asked for.
        """
        entries = self._start.entries
        said = {*self._changes.files, *self._changes.deleted, *self._changes.special, *self._folders}
        for folder in sorted({b"", *self._folders}, key=len):
            silent = [path for path in entries.children(folder) if path not in said]
            if not silent:
                continue
            asked = next((path for path in silent if _is_utf8(path)), None)
            if asked is None:
                return False
            if kind(self._container, f"{self._workdir}/{os.fsdecode(asked)}") is None:
                hidden = entries.below(folder) - set(self._changes.files)
                self._changes.deleted |= hidden
                said |= hidden
        return True


def _is_utf8(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_of_git(path: bytes) -> bool:
    """Whether a path is in, or is, a `.git`, which git takes for a repository's own in any case of its letters."""
    return any(part.lower() == b".git" for part in path.split(b"/"))


def _git_folder(path: bytes) -> bytes:
    """The outermost `.git` that a path is in."""
    parts = path.split(b"/")
    depth = next(number for number, part in enumerate(parts, 1) if is_of_git(part))
    return b"/".join(parts[:depth])


def _layer_of(container: Container) -> str | None:
    """Where the engine's host keeps the container's own layer; None where it can't be read as files."""
    container.reload()
    driver = container.attrs.get("GraphDriver") or {}
    if driver.get("Name") != "overlay2":
        return None
    client = client_of(container)
    status = dict(client.info().get("DriverStatus") or [])
    # with these a file of the layer is not whole, or a folder in it is not where its name says
    if status.get("Native Overlay Diff") != "true" or status.get("Using metacopy", "false") == "true":
        return None
    upper = (driver.get("Data") or {}).get("UpperDir")
    return str(upper) if upper else None


@contextmanager
def _holding(container: Container, layer: str) -> Iterator[Container]:
    """A container, created and never started, that shows a layer read-only; removed at the end."""
    holder = client_of(container).containers.create(
        container.attrs["Image"],
        use_config_proxy=False,
        command=["true"],
        network_mode="none",
        labels=container.labels,
        volumes={layer: {"bind": _LAYER, "mode": "ro"}},
    )
    try:
        yield holder
    finally:
        with suppress(NotFound):
            holder.remove(force=True, v=True)
