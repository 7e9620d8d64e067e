"""Writing files so that a kill at any moment leaves the old file or the new one, never half of one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO

from common.errors import ClawbenchError

_LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}\.half")


class RunError(ClawbenchError):
    """A run can't be used as requested, because of its folder, one of its records or the given options."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces an existing one when the block ends; it is flushed to disk by then.

    If the block raises, the old file is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".half")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
        flush_to_disk(path.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def flush_to_disk(path: Path) -> None:
    """Flush a file's content, or a folder's list of names, so that it survives a loss of power.

    Args:
        path: a file or folder; a symbolic link has no content of its own and is skipped.

    Raises:
        OSError: it can't be read or flushed.
    """
    if path.is_symlink():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree_to_disk(folder: Path) -> None:
    """Flush every file and folder below a folder, and the folder itself (raises OSError)."""
    files = list(files_below(folder))
    folders = {parent for path in files for parent in path.relative_to(folder).parents}
    for path in (*files, *(folder / parent for parent in sorted(folders))):
        flush_to_disk(path)


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock on a file right now; False if there is no such file.

    Raises:
        OSError: the file can't be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def is_leftover(path: Path) -> bool:
    """Whether a file is the unfinished part of one that was being written at a kill."""
    return _LEFTOVER.fullmatch(path.name) is not None


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content; it is on disk when this returns."""
    with replacing(path) as file:
        file.write(data)


def as_json(value: Mapping[str, Any]) -> bytes:
    """The content of a JSON file."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file."""
    write_atomically(path, as_json(value))


def digests_of(folder: Path, without: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Describe every file below a folder, so that a later change is found.

    Args:
        folder: the folder.
        without: relative paths to leave out.

    Returns:
        by relative path, the `size` in bytes and `sha256` of a file, or the target of a symbolic `link`.

    Raises:
        OSError: a file can't be read.
    """
    names = {path.relative_to(folder).as_posix(): path for path in files_below(folder) if not is_leftover(path)}
    return {name: digest_of(path) for name, path in names.items() if name not in without}


def digest_of(path: Path) -> dict[str, Any]:
    """Describe one file as `digests_of` does (raises OSError)."""
    if path.is_symlink():
        return {"link": str(path.readlink())}
    with path.open("rb") as file:
        return {"size": os.fstat(file.fileno()).st_size, "sha256": file_digest(file, "sha256").hexdigest()}


def files_below(folder: Path) -> Iterator[Path]:
    """All files and symbolic links below a folder, sorted."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from files_below(path)
        elif path.is_symlink() or path.is_file():
            yield path
