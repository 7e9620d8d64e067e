"""`predictions.jsonl`, the input of the official harness, which can be derived from the cases' folders at any time.

The harness expects one row per instance, so there is a file for each claw and sample. The run's own file has all rows.
Each file is replaced as a whole, so it is always valid, though it may be older than the folders.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from records.case_folder import CaseFolder
from records.files import RunError, replacing
from records.run_folder import RunDirectory

NAME = "predictions.jsonl"
_SHARE = 0.05
"""The share of a command's time that may be spent on rewriting the files."""


def own_file(case: CaseFolder) -> Path:
    """The file of a case's claw and sample."""
    return case.path.parent / (NAME if case.id.sample == 1 else f"predictions-s{case.id.sample}.jsonl")


def rows(run: RunDirectory) -> Iterator[tuple[CaseFolder, bytes]]:
    """Each case's line, sorted by case; empty if the case has no final patch."""
    for case in run.cases():
        prediction = case.prediction()
        yield case, json.dumps(prediction).encode() + b"\n" if prediction is not None else b""


def write_predictions(run: RunDirectory) -> None:
    """Rewrite all of a run's files; only one row at a time is in memory.

    Raises:
        RunError: a case's record can't be understood. The old files are kept.
        OSError: a file can't be read or written. The old files are kept.
    """
    with ExitStack() as stack:
        files: dict[Path, BinaryIO] = {}
        for case, row in rows(run):
            for path in (run.path / NAME, own_file(case)):
                if path not in files:
                    files[path] = stack.enter_context(replacing(path))
                files[path].write(row)


class Refresher:
    """Rewrites a run's predictions as cases end, but rarely enough to take little time."""

    def __init__(self, run: RunDirectory, clock: Callable[[], float] = time.monotonic) -> None:
        """Write nothing yet."""
        self._run = run
        self._clock = clock
        self._next = 0.0
        self._size = -1
        """The size of the journal at the last rewrite: it grows before a case changes."""

    def refresh(self) -> None:
        """Rewrite the files, unless nothing has happened since the last time (raises RunError, OSError)."""
        size = self._run.journal.size()
        if size != self._size:
            write_predictions(self._run)
            self._size = size

    def case_ended(self) -> None:
        """Rewrite the files, unless that was done a short while ago; on a full disk, the old ones are kept."""
        began = self._clock()
        if began < self._next:
            return
        with suppress(OSError, RunError):
            self.refresh()
        ended = self._clock()
        self._next = ended + (ended - began) / _SHARE
