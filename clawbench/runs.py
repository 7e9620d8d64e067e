"""All runs in a folder of runs, a line each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clawbench.status import Looker, RunStatus
from records.plan import PlanError
from records.run import RunDirectory, RunError


@dataclass(frozen=True)
class Listed:
    """A run, or a folder that looks like one and is none that can be read."""

    run: RunDirectory
    status: RunStatus | None
    trouble: str
    """Why there is no status."""
    size: int
    """Bytes of all its files."""


def runs_in(artifacts: Path) -> Iterator[Listed]:
    """Every run below a folder, the oldest first (raises OSError where it can't be read)."""
    folders = [path.parent for path in artifacts.glob("*/manifest.json")]
    found = [_listed(RunDirectory(folder)) for folder in folders]
    yield from sorted(found, key=lambda one: (one.status.created if one.status else "", one.run.run_id))


def _listed(run: RunDirectory) -> Listed:
    try:
        status, trouble = Looker(run).look(), ""
    except (RunError, PlanError, OSError) as error:
        status, trouble = None, str(error)
    return Listed(run, status, trouble, size_of(run.path))


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; what goes away meanwhile is left out."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total
