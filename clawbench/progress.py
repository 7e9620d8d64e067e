"""What each worker is doing, shown while the run goes on.

Workers write one small file each; the controller reads them and prints a line when something changed, and
`clawbench status` reads them from another process. Under xdist nothing else of a case is visible before it ends.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workspace.owner import is_gone, this_process

_FOLDER = ".progress"


@dataclass(frozen=True)
class Saying:
    """What a worker is doing."""

    worker: str
    case_id: str
    doing: str
    since: float
    """Seconds since 1970."""


def sayings(run: Path) -> list[Saying]:
    """What each worker of a run said last, by worker; those that do nothing, or are no more, are left out."""
    found = [_read(path) for path in sorted((run / _FOLDER).glob("*.json"))]
    return [saying for saying in found if saying is not None and saying.doing]


def _read(path: Path) -> Saying | None:
    try:
        row = json.loads(path.read_text())
        if is_gone(str(row["owner"])):
            return None  # killed: it has not taken its last word back
        return Saying(path.stem, str(row["case"]), str(row["doing"]), float(row["since"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # replaced at this moment; there is a next look


class Progress:
    """One worker's say."""

    def __init__(self, run: Path, worker: str, tell: Callable[[str], None] | None = None) -> None:
        """Name the file; it is made with the first word.

        Args:
            run: the run directory.
            worker: the worker's name.
            tell: prints a line for the user, where this process may.
        """
        self._path = run / _FOLDER / f"{worker}.json"
        self._tell = tell
        self._said = False

    def say(self, case_id: str, doing: str) -> None:
        """Tell what is being done for a case (nothing, where `doing` is empty).

        Where it can't be told, as on a full disk, it isn't: no case ends by that.
        """
        if not doing and not self._said:
            return  # a case that had ended before: there is nothing to take back
        self._said = bool(doing)
        if self._tell is not None and doing:
            self._tell(f"{case_id}: {doing}")
        row = {"case": case_id, "doing": doing, "since": time.time(), "owner": this_process()}
        fresh = self._path.with_suffix(".new")
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(row))
            fresh.replace(self._path)


class ProgressPrinter:
    """The controller's thread that prints what the workers say."""

    def __init__(
        self, run: Path, write: Callable[[str], None], *, every: float = 1.0, remind: float = 30.0
    ) -> None:
        """Nothing is printed before `start`.

        Args:
            run: the run directory.
            write: prints one line.
            every: seconds between two looks.
            remind: seconds after which a step under way is told again.
        """
        self._run = run
        self._write = write
        self._every = every
        self._remind = remind
        self._told: dict[str, tuple[str, str, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="progress")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; returns when no more lines will come."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            for saying in sayings(self._run):
                self._look(saying)

    def _look(self, saying: Saying) -> None:
        worker, case, doing = saying.worker, saying.case_id, saying.doing
        now = time.time()
        before = self._told.get(worker, ("", "", 0.0))
        if before[:2] == (case, doing) and now - before[2] < self._remind:
            return
        self._told[worker] = (case, doing, now)
        elapsed = now - saying.since
        late = f" ({elapsed:.0f} s)" if elapsed >= self._remind else ""
        self._write(f"{worker} {case}: {doing}{late}")
