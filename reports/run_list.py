"""All runs in the folder of artifacts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from records.run_folder import RunDirectory, RunError
from records.status import RunStatus, StatusReader


@dataclass(frozen=True)
class Listed:
    """A run, or a folder with a manifest that can't be read as one."""

    run: RunDirectory
    status: RunStatus | None
    trouble: str
    """Why there is no status; "" if there is one."""
    size: int
    """The bytes of all its files."""


def runs_in(artifacts: Path) -> Iterator[Listed]:
    """Every run in a folder, the oldest first (raises OSError)."""
    folders = [path.parent for path in artifacts.glob("*/manifest.json")]
    found = [_listed(RunDirectory(folder)) for folder in folders]
    yield from sorted(found, key=lambda one: (one.status.created if one.status else "", one.run.run_id))


def _listed(run: RunDirectory) -> Listed:
    try:
        status, trouble = StatusReader(run).look(), ""
    except (RunError, OSError) as error:
        status, trouble = None, str(error)
    return Listed(run, status, trouble, _size_of(run.path))


def _size_of(folder: Path) -> int:
    """The bytes of all files below a folder; those that are removed meanwhile are left out."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total
