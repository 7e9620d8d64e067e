"""`predictions.jsonl`, what the official harness reads: derived from the cases' folders, at any time.

The harness takes one row for an instance, so the file to hand it is a claw's own, and one for each sample. The
run's has all rows. Files are replaced whole: each is valid at every moment, if perhaps older than the folders.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from records.case import CaseFolder
from records.files import replacing
from records.run import RunDirectory

NAME = "predictions.jsonl"
_SHARE = 0.05
"""The part of the time that may go into making them while a run goes on."""


def own_file(case: CaseFolder) -> Path:
    """The file that a case's row is in, beside the run's."""
    return case.path.parent / (NAME if case.sample == 1 else f"predictions-s{case.sample}.jsonl")


def rows(run: RunDirectory) -> Iterator[tuple[CaseFolder, bytes]]:
    """Each case's line, by claw, instance and sample; empty where the case has no patch that counts."""
    for case in run.cases():
        prediction = case.prediction()
        yield case, json.dumps(prediction).encode() + b"\n" if prediction is not None else b""


def write_predictions(run: RunDirectory) -> None:
    """Make all of a run's files anew; one row at a time is in memory.

    Raises:
        OSError: they can't be written, or a patch can't be read. What was there stays as it was.
    """
    with ExitStack() as stack:
        files: dict[Path, BinaryIO] = {}
        for case, row in rows(run):
            for path in (run.path / NAME, own_file(case)):
                if path not in files:
                    files[path] = stack.enter_context(replacing(path))
                files[path].write(row)


class Refresher:
    """Makes a run's predictions anew as cases end, seldom enough to cost next to nothing."""

    def __init__(self, run: RunDirectory, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is written yet."""
        self._run = run
        self._clock = clock
        self._next = 0.0
        self._size = -1
        """Of the journal: every change of a case is in it before its end is."""

    def refresh(self) -> None:
        """Make them anew, unless nothing has happened since that was done last (raises OSError)."""
        size = self._run.journal.size()
        if size != self._size:
            write_predictions(self._run)
            self._size = size

    def case_ended(self) -> None:
        """Make them anew, unless that was done a short while ago; on a full disk, the older ones stay."""
        began = self._clock()
        if began < self._next:
            return
        with suppress(OSError):
            self.refresh()
        ended = self._clock()
        self._next = ended + (ended - began) / _SHARE
