"""Writing files so that a kill at any moment leaves the old one or the new one, never half of one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

_LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}\.half")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes a file's place where the block ends well; it is on the disk then, name and all.

    Where it raises, the old one stays.
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
        see_onto_disk(path.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def see_onto_disk(path: Path) -> None:
    """Have a file's content, or a folder's list of names, on the disk: a loss of power takes what is not.

    Args:
        path: by whoever it was written; a symbolic link has no content, and is in its folder's list.

    Raises:
        OSError: it can't be read, or the disk does not take it.
    """
    if path.is_symlink():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock on a file at this moment; none does on one that is not there.

    Raises:
        OSError: it can't be told.
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
    """Whether a file is what a kill left of one that was being written."""
    return _LEFTOVER.fullmatch(path.name) is not None


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content; it is on the disk when this returns."""
    with replacing(path) as file:
        file.write(data)


def as_json(value: Mapping[str, Any]) -> bytes:
    """A JSON file's content."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file."""
    write_atomically(path, as_json(value))
