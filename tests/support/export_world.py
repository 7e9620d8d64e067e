"""The export tests' oracle: what a patch should be, by other means than the export's.

It reads the final state out of the ended container and compares it with what real git makes of the exported patch
in a real checkout.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from docker.models.containers import Container

from support.export_operations import MUTATE, Operation
from support.workspace_fixtures import done, host_git, put
from workspace.export import Export, export, quoted
from workspace.start_tree import StartTree

State = dict[bytes, tuple[str, bytes]]
"""Path to mode (as git writes it, or "special") and content."""
_REFUSED = re.compile(rb"(?is)(\.git|git~1)[. ]*($|[:\\])")


def mutate(container: Container, operations: Sequence[Operation]) -> None:
    """Carry out operations in a running container; what can't be done is left undone."""
    rows = [[word.decode("latin-1") if isinstance(word, bytes) else word for word in row] for row in operations]
    put(
        container,
        {"mutate/mutate.py": MUTATE.encode(), "mutate/operations.json": json.dumps(rows).encode()},
    )
    code, said, complained = done(container, ["python3", "/mutate/mutate.py"], {"GIT_CONFIG_GLOBAL": "/tmp/g"})
    assert code == 0, said + complained


def end(container: Container) -> None:
    container.reload()
    if container.status == "running":
        container.kill()
        container.wait()


@dataclass(frozen=True)
class World:
    """A prepared image's start, on the host."""

    start: StartTree
    checkout: Path
    """What a fresh container of the prepared image has at /testbed."""

    def check(self, container: Container, result: Export) -> None:
        """Whether a patch, applied to the start tree by real git, gives the final state of an ended container."""
        scratch = Path(tempfile.mkdtemp(prefix="export-oracle-"))
        try:
            _Oracle(self, scratch).check(container, result)
        finally:
            shutil.rmtree(scratch)


class _Oracle:
    def __init__(self, world: World, scratch: Path) -> None:
        self._start = world.start
        self._applied = scratch / "applied"
        self._final = scratch / "final"
        shutil.copytree(world.checkout, self._applied, symlinks=True)
        self._before = read_state(self._applied)
        self._final.mkdir()
        shutil.copytree(world.checkout / ".git", self._final / ".git", symlinks=True)

    def check(self, container: Container, result: Export) -> None:
        assert json.loads(json.dumps({"p": result.raw}))["p"].encode() == result.raw.encode()
        final = extract(container, self._final)
        lawful = self._lawfully_dropped(final)
        rows = {item.path for item in result.dropped}
        whole = {row for row in rows if row.endswith("/")}  # many files in one row
        assert all(row in {quoted(path) for path in lawful} for row in rows - whole), (rows, lawful)
        if result.raw:
            host_git(self._applied, "apply", "-", stdin=result.raw.encode())
        else:
            assert result.start_tree == result.final_tree
        applied = read_state(self._applied)
        self._compare(applied, final, lawful, {path for path in lawful if _told(path, rows, whole)})
        self._compare_trees(result)

    def _compare(self, applied: State, final: State, lawful: set[bytes], told: set[bytes]) -> None:
        untold = lawful - told
        same_as_before = {path for path in untold if self._before.get(path) == final.get(path)}
        assert untold == same_as_before, f"left out without a word: {untold - same_as_before}"
        for path in applied.keys() | final.keys():
            if path in lawful or (path == b"win/u16.txt" and not _is_utf16(final.get(path))):
                continue  # as in the image, whatever the agent did to it
            if path not in self._start.entries and path in self._before:
                continue  # a file of the image that no commit knows was removed: no patch can say so
            there, wanted = applied.get(path), final.get(path)
            if there != wanted and path.endswith((b".bat", b".id", b".auto")):
                # git has no words for another form than the attribute's
                there, wanted = _normal(there), _normal(wanted)
            assert there == wanted, (path, _short(there), _short(wanted))

    def _compare_trees(self, result: Export) -> None:
        """The same patch, applied to the index alone, gives the tree that the export names."""
        host_git(self._applied, "read-tree", result.start_tree)
        if result.raw:
            host_git(self._applied, "apply", "--cached", "-", stdin=result.raw.encode())
        assert host_git(self._applied, "write-tree").decode().strip() == result.final_tree

    def _lawfully_dropped(self, final: State) -> set[bytes]:
        """What no patch carries: by git's own ignore rules in the final tree, and by nature."""
        lawful = {path for path, (mode, _) in final.items() if mode == "special"}
        lawful |= {path for path in final if any(_REFUSED.match(part) for part in path.split(b"/"))}
        lawful |= {path for path, (_, content) in final.items() if b" /" in path and _is_without_text(content)}
        untracked = {path for path in self._before if path not in self._start.entries}
        for path in final:
            ancestors = {path.rsplit(b"/", depth)[0] for depth in range(path.count(b"/") + 1)}
            if ancestors & untracked or any(other.startswith(path + b"/") for other in untracked):
                lawful.add(path)
        asked = sorted(path for path in final if path not in lawful)
        feed = b"".join(b"./" + path + b"\0" for path in asked)
        told = host_git(self._final, "check-ignore", "-z", "--stdin", stdin=feed, ok=(0, 1)) if feed else b""
        ignored = {path.removeprefix(b"./") for path in told.split(b"\0")[:-1]}
        return lawful | ignored


def read_state(folder: Path) -> State:
    """All that is in a folder of the host, but for its `.git`."""
    state: State = {}
    root = os.fsencode(folder)
    for parent, folders, names in os.walk(root):
        if parent == root:
            folders.remove(b".git")
        for name in [
            *names,
            *(each for each in folders if (Path(os.fsdecode(parent)) / os.fsdecode(each)).is_symlink()),
        ]:
            path = parent + b"/" + name
            mode = os.lstat(path).st_mode
            relative = os.path.relpath(path, root)
            if stat.S_ISLNK(mode):
                state[relative] = ("120000", os.readlink(path))  # noqa: PTH115 - a Path would tidy it
            else:
                state[relative] = ("100755" if mode & 0o100 else "100644", Path(os.fsdecode(path)).read_bytes())
    return state


def extract(container: Container, folder: Path) -> State:
    """The final state of /testbed, laid out in a folder as well (without any `.git` of its own)."""
    state: State = {}
    chunks, _ = container.get_archive("/testbed")
    with tempfile.TemporaryFile() as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.seek(0)
        with tarfile.open(fileobj=cast(IO[bytes], spool), mode="r:", errors="surrogateescape") as archive:
            for member in archive:
                path = os.fsencode(member.name).partition(b"/")[2]
                if member.isdir() or path.partition(b"/")[0] == b".git":
                    continue
                first = os.fsencode(member.linkname).partition(b"/")[2]
                if member.islnk() and first in state:
                    state[path] = state[first]
                elif member.issym():
                    state[path] = ("120000", os.fsencode(member.linkname))
                elif member.isfile() or member.islnk():
                    source = archive.extractfile(member)
                    mode = "100755" if member.mode & 0o100 else "100644"
                    state[path] = (mode, source.read() if source else b"") if source else ("special", b"")
                else:
                    state[path] = ("special", b"")
    for path, (mode, content) in state.items():
        if b".git" in path.split(b"/") or mode == "special":
            continue
        target = folder / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            target.symlink_to(os.fsdecode(content))
        else:
            target.write_bytes(content)
    return state


def unpack(container: Container, folder: Path) -> Path:
    """A container's /testbed on the host, `.git` included."""
    data = b"".join(container.get_archive("/testbed")[0])
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as archive:
        archive.extractall(folder, filter="fully_trusted")  # noqa: S202 - the image is ours
    return folder / "testbed"


def exported(
    container: Container, world: World, agent_files: Sequence[str] = (), folder: Path | None = None
) -> Export:
    """End a container and export what was done in it."""
    end(container)
    saved = folder or Path(tempfile.mkdtemp(prefix="export-saved-"))
    try:
        return export(container, world.start, agent_files=agent_files, save_agent_files_to=saved)
    finally:
        if folder is None:
            shutil.rmtree(saved)


def _told(path: bytes, rows: set[str], whole: set[str]) -> bool:
    top = path.partition(b"/")[0] + (b"/" if b"/" in path else b"")
    return quoted(path) in rows or quoted(top) in whole


def _is_without_text(content: bytes) -> bool:
    """Whether a patch that adds a file names it in its header alone."""
    return not content or b"\0" in content[:8000] or content.decode(errors="replace").encode() != content


def _is_utf16(entry: tuple[str, bytes] | None) -> bool:
    try:
        return entry is None or bool(entry[1].decode("utf-16-le")) is not None
    except UnicodeDecodeError:
        return False


def _normal(entry: tuple[str, bytes] | None) -> tuple[str, bytes] | None:
    return entry and (entry[0], re.sub(rb"\$Id:[^$\n]*\$", b"$Id$", entry[1].replace(b"\r\n", b"\n")))


def _short(entry: tuple[str, bytes] | None) -> object:
    return entry and (entry[0], len(entry[1]), entry[1][:80])
