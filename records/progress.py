"""What each worker is doing right now, in one small file per worker, which any process may read.

pytest-xdist shows nothing about a case before it ends.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.processes import is_gone, this_process

_FOLDER = ".progress"
PAUSED = "paused: "
"""How a step begins in which a worker waits for the end of an outage."""


@dataclass(frozen=True)
class Step:
    """What a worker is doing."""

    worker: str
    case_id: str
    doing: str
    since: float
    """Seconds since 1970."""


def steps(run: Path) -> list[Step]:
    """What the workers of a run are doing, sorted by worker; idle and dead workers are left out."""
    found = [_read(path) for path in sorted((run / _FOLDER).glob("*.json"))]
    return [step for step in found if step is not None and step.doing]


def _read(path: Path) -> Step | None:
    try:
        row = json.loads(path.read_text())
        if is_gone(str(row["owner"])):
            return None  # killed in the middle of the step
        return Step(path.stem, str(row["case"]), str(row["doing"]), float(row["since"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # just being replaced; the next read finds it


class Progress:
    """The progress of one worker."""

    def __init__(self, run: Path, worker: str) -> None:
        """Create no file before the first step.

        Args:
            run: the run's folder.
            worker: the worker's name.
        """
        self._path = run / _FOLDER / f"{worker}.json"
        self._is_busy = False

    def say(self, case_id: str, doing: str) -> None:
        """Publish what is being done for a case; an empty `doing` means that the worker is idle.

        Errors, such as a full disk, are ignored: no case may fail because of this.
        """
        if not doing and not self._is_busy:
            return  # this worker only replayed the case
        self._is_busy = bool(doing)
        row = {"case": case_id, "doing": doing, "since": time.time(), "owner": this_process()}
        fresh = self._path.with_suffix(".new")
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(row))
            fresh.replace(self._path)
