"""What the export tests do: a start tree of many shapes, and the operations that are drawn on it.

Both are carried out by Python scripts in a real container. Paths and contents are bytes; they travel as JSON, each
byte a character.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Operation = tuple[Any, ...]
"""The name of a function of `MUTATE`, a path, and its other argument."""

START = r"""
import os, subprocess
os.makedirs("/testbed"); os.chdir(b"/testbed")
def write(path, data, mode=0o644):
    folder = os.path.dirname(path)
    if folder: os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as f: f.write(data)
    os.chmod(path, mode)
def git(*words):
    return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
text = b"".join(b"line %d of many\n" % n for n in range(40))
git("init", "-q", "-b", "main")
write(b".gitattributes", b"*.bat text eol=crlf\n*.auto text=auto\n*.id ident\n"
      b"win/u16.txt working-tree-encoding=UTF-16LE\n")
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
    else: write(path + b"/f", b"f"); subprocess.run([b"git", b"-C", path, b"init", b"-q"], check=True)
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
    except (OSError, subprocess.CalledProcessError, IndexError, TypeError) as error: print(kind, ascii(error))
"""


PLACES = [
    b"README.md", b"src", b"src/core.py", b"src/util.py", b"src/lib", b"src/lib/deep", b"src/lib/deep/er/x.c",
    b"a b", b"a b/c d/e f", b"swap", b"swap/one", b"swap/in", b"swapfile", b"build", b"build/kept.txt",
    b"src/forced.tmp", b"keep.log", b"with space.txt", b"tab\there", b"new\nline", b'quote"back\\slash', b":colon",
    b"-dash", b"trailing ", "ünï".encode(), b"*star", b"latin", b"latin/\xff\xfe", b"latin/caf\xe9.txt", b"\xe9",
    b"\xe9/first", b"bin/run.sh", b"docs", b"docs/crlf.txt", b"docs/mixed.txt", b"win", b"win/start.bat",
    b"win/lf.auto", b"win/version.id", b"win/u16.txt", b"latin/prose.txt", b"latin/prose2.txt", b"data",
    b"data/blob.bin", b"data/no-eol.txt", b"data/empty", b"data/big.txt", b"link", b"dangling", b"folder-link",
    b"absolute-link", b"latin-link", b".gitignore", b"src/.gitignore", b".gitattributes", b"stray.txt", b"cache",
    b"image.log", b"vendored/file", b"setup.cfg",
]  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(
        [b"new.py", b"two words", b"tab\t", b"line\nbreak", b'"quoted"', b"back\\slash", b":(top)x", b"-rf", b"--",
         b"caf\xe9", "日本".encode(), b"end ", b" start", b"x.log", b"y.tmp", b"z.excluded", b"#c", b"!n", b"[a]",
         b"\x01\x7f", b"a" * 200, b"\xf0\x9f\x98\x80", b"node_modules", b".hidden", b"core.py", b"...", b"\r"]
    ),
    st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"0")).filter(
        lambda name: name not in (b".", b"..") and not name.lower().startswith((b".git", b"git~"))
    ),
)  # fmt: skip
FOLDERS = st.sampled_from(
    [b"", b"src/", b"src/lib/", b"build/", b"latin/", b"\xe9/", b"fresh/", b"fresh/er/", b"swap/"]
)
NEW = st.builds(bytes.__add__, FOLDERS, NAMES)
PATHS = st.one_of(st.sampled_from(PLACES), NEW)
LINES = [
    b"plain\n",
    b"dos\r\n",
    b"caf\xe9\n",
    "日本\n".encode(),
    b"\r",
    b"no end",
    b"\0",
    b"\x0c",
    "\u2028".encode(),
    b"\n",
]
CONTENTS = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=8).map(b"".join),
    st.binary(max_size=300),
    st.sampled_from([b"", b"x" * 9000 + b"\0late\n", b"word\n" * 700_000, bytes(range(256)) * 12_000]),
)


def operation(kind: str, paths: st.SearchStrategy[bytes], values: object) -> st.SearchStrategy[Operation]:
    strategy = values if isinstance(values, st.SearchStrategy) else st.just(values)
    return st.tuples(st.just(kind), paths, strategy)


IGNORE_FILES = st.sampled_from([b".gitignore", b"fresh/.gitignore", b"src/.gitignore"])
GIT = [b"git add -A; git commit -qm agent", b"git rm -rq src", b"git mv README.md moved.md", b"git stash -u",
       b"git checkout -q -b other", b"git gc -q", b"git clean -fdx", b"rm -rf .git"]  # fmt: skip

OPERATIONS = st.one_of(
    operation("write", PATHS, CONTENTS),
    operation("write", NEW, CONTENTS),
    operation("edit", st.sampled_from(PLACES), CONTENTS),
    operation("delete", PATHS, 0),
    operation("rename", PATHS, PATHS),
    operation(
        "remake",
        st.sampled_from([b"src", b"swap", b"latin", b"\xe9", b"build", b"data"]),
        st.sampled_from([b"one", b"core.py/x", b"\xff/prose.txt"]),
    ),
    operation(
        "symlink", PATHS, st.sampled_from([b"README.md", b"/etc", b"nowhere", b"..", b"src", b"caf\xe9", b"a\n"])
    ),
    operation("hardlink", PATHS, PATHS),
    operation("hardlink", st.sampled_from([b".git/config", b".git/HEAD"]), NEW),
    operation("sneak", PATHS, 0),
    operation("touch", PATHS, 0),
    operation("chmod", PATHS, st.sampled_from([0o755, 0o644, 0o600, 0o711, 0o4755, 0])),
    operation("copy", PATHS, PATHS),
    operation("into_folder", PATHS, NAMES),
    operation("into_file", PATHS, CONTENTS),
    operation("many", st.sampled_from([b"node_modules", b"build/out"]), st.sampled_from([10, 1500])),
    operation("nested", NEW, st.sampled_from([b"clone", b"init"])),
    operation("fifo", PATHS, 0),
    operation("write", IGNORE_FILES, st.sampled_from([b"*.py\n", b"*\n", b"!*.log\n/fresh/\n", b"caf\xe9\n"])),
    operation("git", st.sampled_from(GIT), 0),
)

LARGE = """
mkdir /thelib; cd /thelib; git init -q -b main; echo one >lib.c; mkdir in
echo in >in/f; git add -A; git commit -qm one
mkdir /testbed; cd /testbed; git init -q -b main
for n in $(seq 40); do mkdir -p pkg$n/sub; for m in $(seq 25); do echo $n $m >pkg$n/sub/f$m; done; done
git -c protocol.file.allow=always submodule --quiet add /thelib third/lib
git add -A; git commit -qm base; rm -rf /thelib
git rev-parse HEAD
"""
"""A repository of 1,000 files and a submodule."""
