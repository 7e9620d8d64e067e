"""Git trees read and written folder by folder, so that work grows with the folders touched, not with the tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path

from workspace.errors import ExportError

GITLINK = "160000"
"""The mode of a submodule's entry: its files are in another repository."""
FOLDER = "40000"


@dataclass(frozen=True)
class Entry:
    """A path's content in a tree as git tells it."""

    mode: str
    object_id: str


GONE = Entry("0", "0" * 40)
"""Stands for a path that is not there any more."""


def git(
    directory: Path,
    *arguments: str,
    stdin: bytes | None = None,
    index: Path | None = None,
    work_tree: Path | None = None,
    config: Mapping[str, str] | None = None,
    ok: Iterable[int] = (0,),
) -> bytes:
    """Run the host's git on a bare repository, blind to every configuration but what is given.

    Raises:
        ExportError: it ended with a code that is not in `ok`.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_DIR": str(directory),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    if work_tree is not None:
        environment["GIT_WORK_TREE"] = str(work_tree)
    # names that only other systems can't have are names all the same
    settings = {"core.protectNTFS": "false", "core.protectHFS": "false", **(config or {})}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    done = subprocess.run(
        ["git", *options, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env=environment,
        cwd=work_tree or directory,
        check=False,
    )
    if done.returncode not in tuple(ok):
        raise ExportError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return done.stdout


def ancestors(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in, the nearest first; the repository itself is not one of them."""
    while path := path.rpartition(b"/")[0]:
        yield path


class TreeEntries(Mapping[bytes, Entry]):
    """The files of a tree by path (submodules included). Folders are read when they are first asked for."""

    def __init__(self, repository: Path, tree: str) -> None:
        """Nothing is read yet.

        Args:
            repository: a bare repository that has the tree.
            tree: its object id.
        """
        self._repository = repository
        self._folders: dict[str, dict[bytes, Entry]] = {}
        self.tree = tree

    def folder(self, tree: str) -> dict[bytes, Entry]:
        """What is directly in a folder, by name."""
        if tree not in self._folders:
            self._read([tree])
        return self._folders[tree]

    def load(self, paths: Iterable[bytes]) -> None:
        """Read all the folders that some paths lie in, or are: a few calls for any number of them."""
        wanted = {folder for path in paths for folder in (path, *ancestors(path))}
        for _ in self._levels(b"", self.tree, wanted.__contains__):
            pass

    def _levels(self, path: bytes, tree: str, is_wanted: Callable[[bytes], bool]) -> Iterator[dict[bytes, Entry]]:
        """What is in a folder and in those below it that are wanted, one level after the other."""
        level = {path: tree}
        while level:
            self._read(level.values())
            found = {
                (folder + b"/" + name if folder else name): entry
                for folder, object_id in level.items()
                for name, entry in self._folders[object_id].items()
            }
            yield found
            level = {
                child: entry.object_id
                for child, entry in found.items()
                if entry.mode == FOLDER and is_wanted(child)
            }

    def _read(self, trees: Iterable[str]) -> None:
        missing = sorted({tree for tree in trees if tree not in self._folders})
        if not missing:
            return
        told = git(
            self._repository, "cat-file", "--batch", stdin="".join(f"{tree}\n" for tree in missing).encode()
        )
        for tree in missing:
            head, _, told = told.partition(b"\n")
            size = int(head.split()[2])
            self._folders[tree] = _parsed(told[:size], len(tree) // 2)
            told = told[size + 1 :]

    def _at(self, path: bytes) -> Entry | None:
        """The entry at a path, a folder's included."""
        found = Entry(FOLDER, self.tree)
        for name in path.split(b"/") if path else ():
            if found.mode != FOLDER:
                return None
            child = self.folder(found.object_id).get(name)
            if child is None:
                return None
            found = child
        return found

    def __getitem__(self, path: bytes) -> Entry:
        """The entry of a file or a submodule (KeyError for a folder and for what is not there)."""
        found = self._at(path)
        if found is None or found.mode == FOLDER:
            raise KeyError(path)
        return found

    def children(self, folder: bytes) -> list[bytes]:
        """The paths of all that is directly in a folder, sorted; nothing where there is no such folder."""
        found = self._at(folder)
        if found is None or found.mode != FOLDER:
            return []
        return sorted(folder + b"/" + name if folder else name for name in self.folder(found.object_id))

    def below(self, path: bytes) -> set[bytes]:
        """All files at and below a path."""
        found = self._at(path)
        if found is None:
            return set()
        if found.mode != FOLDER:
            return {path}
        levels = self._levels(path, found.object_id, lambda _: True)
        return {child for level in levels for child, entry in level.items() if entry.mode != FOLDER}

    def __iter__(self) -> Iterator[bytes]:
        return iter(sorted(self.below(b"")))

    def __len__(self) -> int:
        return len(self.below(b""))

    def changed(self, changes: Mapping[bytes, Entry], write: Callable[[bytes], None]) -> str:
        """The id of the tree that differs from this one by some entries.

        Args:
            changes: entries by path; GONE takes one away.
            write: takes the content of every tree object that is new.

        Raises:
            ExportError: a path lies below what is no folder.
        """
        return self._changed(self.tree, changes, write) or _written([], len(self.tree), write)

    def _changed(
        self, tree: str | None, changes: Mapping[bytes, Entry], write: Callable[[bytes], None]
    ) -> str | None:
        names = dict(self.folder(tree)) if tree else {}
        nested: dict[bytes, dict[bytes, Entry]] = {}
        for path, entry in changes.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                nested.setdefault(name, {})[rest] = entry
            elif entry != GONE:
                names[name] = entry
            elif name in names and names[name].mode != FOLDER:
                del names[name]
        for name, inner in nested.items():
            before = names.get(name)
            old = before.object_id if before and before.mode == FOLDER else None
            new = self._changed(old, inner, write)
            if new is not None and before is not None and before.mode != FOLDER:
                raise ExportError(f"{name!r} is a file and a folder at once")
            if new is not None:
                names[name] = Entry(FOLDER, new)
            elif old is not None:
                del names[name]
        return _written(names.items(), len(self.tree), write) if names else None


def _parsed(raw: bytes, id_bytes: int) -> dict[bytes, Entry]:
    """A tree object's content: `mode SP name NUL id`, over and over."""
    entries = {}
    while raw:
        mode, _, raw = raw.partition(b" ")
        name, _, raw = raw.partition(b"\0")
        entries[name] = Entry(_canonical(mode), raw[:id_bytes].hex())
        raw = raw[id_bytes:]
    return entries


def _canonical(mode: bytes) -> str:
    """A mode as git reads it: old trees have padded ones, and permissions that count for nothing."""
    number = int(mode, 8)
    if number & 0o170000 == 0o100000:
        return "100755" if number & 0o100 else "100644"
    return f"{number:o}"


def _written(names: Iterable[tuple[bytes, Entry]], id_digits: int, write: Callable[[bytes], None]) -> str:
    # git sorts a folder as if its name ended with a slash
    rows = sorted(names, key=lambda row: row[0] + (b"/" if row[1].mode == FOLDER else b""))
    content = b"".join(
        f"{entry.mode} ".encode() + name + b"\0" + bytes.fromhex(entry.object_id) for name, entry in rows
    )
    write(content)
    digest = sha1 if id_digits == 40 else sha256
    return digest(b"tree %d\0" % len(content) + content).hexdigest()
