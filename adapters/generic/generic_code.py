"""GenericAgent's own files, from the PyPI package or from a checkout of its repository.

It writes into the folder that it runs from, so every case gets a copy. What a user's own runs left in a checkout
(keys, memories, sessions) must not be in the copy: from a git checkout only tracked files are copied, from another
folder everything except what GenericAgent is known to write.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from adapters.base import NotInstalledError

MODULES = ("agentmain.py", "agent_loop.py", "llmcore.py", "ga.py")
"""Files that package and checkout both have."""

_KEYS = ("mykey.py", "mykey.json")
_WRITTEN = ("temp", "tasks", "sche_tasks", "auth.json")
_MEMORIES = ("global_mem.txt", "global_mem_insight.txt", "file_access_stats.json", "L4_raw_sessions")
_NEVER_READ = (".pyc", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".mp4")
"""Pictures and papers beside the code."""


def is_agent(folder: Path) -> bool:
    """Whether a folder holds GenericAgent."""
    return all((folder / name).is_file() for name in MODULES)


def checkout_files(folder: Path) -> dict[str, bytes]:
    """The files of a checkout by relative path (raises NotInstalledError where git can't read it)."""
    if (folder / ".git").exists():
        names = _git(folder, "ls-files", "-z").decode("utf-8", "surrogateescape").split("\0")
        paths = [folder / name for name in names if name]
    else:
        paths = [path for path in sorted(folder.rglob("*")) if not _is_left_over(path.relative_to(folder))]
    return _read(folder, [path for path in paths if path.name not in _KEYS])


def package_files(folder: Path) -> dict[str, bytes]:
    """The files of the installed package by relative path."""
    return _read(folder, sorted(folder.rglob("*")))


def checkout_version(folder: Path) -> str:
    """The commit of a git checkout, with `-dirty` where files differ from it; else a digest of the files.

    Raises:
        NotInstalledError: git can't read the checkout.
    """
    if (folder / ".git").exists():
        described = _git(folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
        return described.decode().strip()
    digest = hashlib.sha256()
    for name, content in sorted(checkout_files(folder).items()):
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return f"sha256-{digest.hexdigest()[:12]}"


def _is_left_over(path: Path) -> bool:
    top = path.parts[0]
    if top.startswith(".") or top in _WRITTEN:
        return True
    return top == "memory" and len(path.parts) > 1 and path.parts[1] in _MEMORIES


def _read(folder: Path, paths: list[Path]) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if path.is_file() and not path.is_symlink() and path.suffix.lower() not in _NEVER_READ
    }


def _git(folder: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise NotInstalledError(f"git can't read {folder}: {said[0] if said else 'no output'}")
    return done.stdout
