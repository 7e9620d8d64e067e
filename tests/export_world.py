"""The world of the export tests: a start tree of many shapes, operations on it, and an oracle of its own.

The operations run in a real container, by a Python script of ours; the oracle reads the final state out of the
ended container and compares it with what real git makes of the exported patch in a real checkout.
"""

from __future__ import annotations

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
from typing import IO, Any, cast

from docker.models.containers import Container
from workspace_fixtures import host_git, put

from workspace.export import Export, export, quoted
from workspace.start_tree import StartTree

Operation = tuple[Any, ...]
State = dict[bytes, tuple[str, bytes]]
"""Path to mode (as git writes it, or "special") and content."""

START = r"""
import os, subprocess
os.makedirs("/testbed"); os.chdir(b"/testbed")
def write(path, data, mode=0o644):
    folder = os.path.dirname(path)
    if folder: os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as f: f.write(data)
    os.chmod(path, mode)
def git(*words): return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
text = b"".join(b"line %d of many\n" % n for n in range(40))
git("init", "-q", "-b", "main")
write(b".gitattributes", b"*.bat text eol=crlf\n*.auto text=auto\n*.id ident\nwin/u16.txt working-tree-encoding=UTF-16LE\n")
write(b".gitignore", b"*.log\nbuild/\n/node_modules/\n!keep.log\n")
write(b"src/.gitignore", b"*.tmp\n")
for name in (b"README.md", b"src/core.py", b"src/util.py", b"src/lib/deep/er/x.c", b"src/lib/y.c", b"docs/a.md",
             b"a b/c d/e f", b"swap/one", b"swap/two", b"swap/in/three", b"swapfile", b"build/kept.txt",
             b"src/forced.tmp", b"keep.log", b"with space.txt", b"tab\there", b"new\nline", b'quote"back\\slash',
             b":colon", b"-dash", b"trailing ", "\u00fcn\u00ef".encode(), b"#hash", b"!bang", b"*star",
             b"latin/\xff\xfe", b"latin/caf\xe9.txt", b"\xe9/first", b"\xe9/second", b"zz/~"):
    write(name, name + b"\n" + text)
write(b"bin/run.sh", b"#!/bin/sh\nexit 0\n", 0o755)
write(b"docs/crlf.txt", text.replace(b"\n", b"\r\n"))
write(b"docs/mixed.txt", text[:100].replace(b"\n", b"\r\n") + text)
write(b"win/start.bat", text.replace(b"\n", b"\r\n"))
write(b"win/lf.auto", text)
write(b"win/version.id", b"$Id$\n" + text)
write(b"win/u16.txt", text.decode().encode("utf-16-le"))
write(b"latin/prose.txt", b"caf\xe9\n" * 30)
write(b"latin/prose2.txt", b"na\xefve\n" * 30)
write(b"data/blob.bin", bytes(range(256)) * 8)
write(b"data/no-eol.txt", b"first\nlast")
write(b"data/empty", b"")
write(b"data/big.txt", b"".join(b"%09d\n" % n for n in range(40000)))
os.symlink(b"src/core.py", b"link"); os.symlink(b"nowhere", b"dangling"); os.symlink(b"src", b"folder-link")
os.symlink(b"/etc/passwd", b"absolute-link"); os.symlink(b"caf\xe9", b"latin-link")
git("add", "-A", "-f"); git("commit", "-q", "-m", "base")
base = git("rev-parse", "HEAD")
git("rm", "-q", "--cached", "win/version.id"); os.unlink("win/version.id")
write(b"win/version.id", b"$Id$\n" + text); git("add", "-A", "-f")
os.environ.update({"GIT_%s_%s" % (who, what): value for who in ("AUTHOR", "COMMITTER")
                   for what, value in (("NAME", "SWE-bench"), ("EMAIL", "setup@swebench.config"))})
write(b"setup.cfg", b"[pytest]\n"); git("add", "-A", "-f"); git("commit", "-q", "-m", "SWE-bench")
with open(".git/info/exclude", "w") as f: f.write("*.excluded\n")
# what the image has and no commit knows
write(b"stray.txt", b"stray\n"); write(b"cache/state.db", b"state"); write(b"image.log", b"log\n")
write(b"build/out/made.o", b"object"); write(b"vendored/file", b"from elsewhere\n")
subprocess.run("cd vendored && git init -q && git add -A && git commit -q -m vendored", shell=True, check=True)
print(base)
"""

MUTATE = r"""
import json, os, shutil, subprocess, sys
os.chdir("/testbed")
def raw(text): return text.encode("latin-1")
def remove(path):
    if os.path.isdir(path) and not os.path.islink(path): shutil.rmtree(path)
    elif os.path.lexists(path): os.unlink(path)
def parents(path):
    folder = os.path.dirname(path)
    if folder: os.makedirs(folder, exist_ok=True)
def write(path, data):
    parents(path)
    with open(path, "wb") as f: f.write(data)
def edit(path, data):
    old = open(path, "rb").read()
    at = old.find(b"\n", len(old) // 2) + 1
    write(path, old[:at] + data + old[at:])
def rename(path, to):
    parents(to); shutil.move(path, to)
def remake(path, names):
    shutil.rmtree(path); os.makedirs(path)
    for name in names.split(b"/"): write(os.path.join(path, name), b"anew\n")
def symlink(path, target):
    remove(path); parents(path); os.symlink(target, path)
def hardlink(path, to):
    parents(to); remove(to); os.link(path, to)
def sneak(path, _):
    seen = os.stat(path); data = open(path, "rb").read()
    write(path, bytes([data[0] ^ 1]) + data[1:]); os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
def into_folder(path, name):
    remove(path); write(os.path.join(path, name), b"inside\n")
def into_file(path, data):
    remove(path); write(path, data)
def many(path, count):
    for n in range(count): write(os.path.join(path, b"pkg%d" % (n % 50), b"f%d.js" % n), b"x")
def nested(path, how):
    parents(path)
    if how == b"clone": subprocess.run([b"git", b"clone", b"-q", b"/testbed", path], check=True)
    else: os.makedirs(path); write(path + b"/f", b"f"); subprocess.run([b"git", b"-C", path, b"init", b"-q"], check=True)
def fifo(path, _):
    remove(path); parents(path); os.mkfifo(path)
def git(words, _): subprocess.run(words, shell=True)
def copy(path, to):
    parents(to); shutil.copy2(path, to, follow_symlinks=False)
def touch(path, _): os.utime(path, follow_symlinks=False)
def chmod(path, mode): os.chmod(path, mode)
def delete(path, _): remove(path)
for kind, path, value in json.load(open("/mutate/operations.json")):
    value = raw(value) if isinstance(value, str) else value
    try: globals()[kind](raw(path), value)
    except (OSError, shutil.Error, subprocess.CalledProcessError, IndexError) as error: print(kind, ascii(path), ascii(error))
"""


def mutate(container: Container, operations: Sequence[Operation]) -> None:
    """Carry out operations in a running container; what can't be done is left undone."""
    rows = [[word.decode("latin-1") if isinstance(word, bytes) else word for word in row] for row in operations]
    put(
        container,
        {"mutate/mutate.py": MUTATE.encode(), "mutate/operations.json": json.dumps(rows).encode()},
    )
    code, output = container.exec_run(
        ["python3", "/mutate/mutate.py"], environment={"GIT_CONFIG_GLOBAL": "/tmp/g"}
    )
    assert code == 0, output.decode(errors="replace")


def end(container: Container) -> None:
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
        whole = {item.path for item in result.dropped if item.files > 1}
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
            if path in lawful:
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
        lawful |= {path for path in final if b".git" in path.split(b"/")}
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
                state[relative] = ("120000", os.readlink(path))
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
                if member.issym():
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
            os.symlink(content, os.fsencode(target))
        else:
            target.write_bytes(content)
    return state


def exported(
    container: Container, world: World, droppings: Sequence[str] = (), folder: Path | None = None
) -> Export:
    """End a container and export what was done in it."""
    end(container)
    saved = folder or Path(tempfile.mkdtemp(prefix="export-saved-"))
    try:
        return export(container, world.start, droppings=droppings, save_droppings_to=saved)
    finally:
        if folder is None:
            shutil.rmtree(saved)


def _told(path: bytes, rows: set[str], whole: set[str]) -> bool:
    top = path.partition(b"/")[0] + (b"/" if b"/" in path else b"")
    return quoted(path) in rows or quoted(top) in whole


def _normal(entry: tuple[str, bytes] | None) -> tuple[str, bytes] | None:
    return entry and (entry[0], re.sub(rb"\$Id:[^$\n]*\$", b"$Id$", entry[1].replace(b"\r\n", b"\n")))


def _short(entry: tuple[str, bytes] | None) -> object:
    return entry and (entry[0], len(entry[1]), entry[1][:80])
