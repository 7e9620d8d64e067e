"""Prints what the workers are doing while the run goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from records.progress import Step, steps


class ProgressPrinter:
    """The controller's thread that prints the workers' steps."""

    def __init__(
        self, run: Path, write: Callable[[str], None], *, every: float = 1.0, remind: float = 30.0
    ) -> None:
        """Print nothing before `start`.

        Args:
            run: the run's folder.
            write: prints one line.
            every: seconds between two reads of the workers' files.
            remind: seconds after which a step that is still going on is printed again.
        """
        self._run = run
        self._write = write
        self._every = every
        self._remind = remind
        self._told: dict[str, tuple[str, str, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="progress")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; no line is printed after this returns."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            for step in steps(self._run):
                self._look(step)

    def _look(self, step: Step) -> None:
        worker, case, doing = step.worker, step.case_id, step.doing
        now = time.time()
        before = self._told.get(worker, ("", "", 0.0))
        if before[:2] == (case, doing) and now - before[2] < self._remind:
            return
        self._told[worker] = (case, doing, now)
        elapsed = now - step.since
        late = f" ({elapsed:.0f} s)" if elapsed >= self._remind else ""
        self._write(f"{worker} {case}: {doing}{late}")
