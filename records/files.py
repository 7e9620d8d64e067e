"""Writing files so that a kill at any moment leaves the old one or the new one, never half of one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content; it is on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file."""
    write_atomically(
        path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
    )


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Append one JSON line that is whole whatever other processes append, and on the disk when this returns."""
    line = (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.lseek(handle, 0, os.SEEK_END) and not _ends_with_newline(path):
            line = b"\n" + line  # a line torn by a kill or a full disk stays torn, and alone
        if os.write(handle, line) != len(line):
            raise OSError(f"{path}: the disk is full")
        os.fsync(handle)
    finally:
        os.close(handle)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
