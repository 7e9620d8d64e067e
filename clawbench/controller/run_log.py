"""The controller's log of a run: what each command selected, how it ended, and the predictions so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from records.case_id import CaseId
from records.predictions import Refresher
from records.run_folder import REPORTS, RunDirectory


class RunLog:
    """Writes to the run's journal and keeps `predictions.jsonl` up to date. Workers have none."""

    def __init__(self, run: RunDirectory) -> None:
        """Open the log of a run that this process has locked."""
        self._run = run
        self._predictions = Refresher(run)
        self._has_begun = False

    def begin(self, selected: Collection[CaseId], asked: Mapping[str, Any], *, resume: bool, left: int) -> None:
        """Record the selection of this command, and remove leftovers of a killed command.

        Args:
            selected: the cases that the command selects.
            asked: the selection options, without local paths.
            resume: whether existing results are kept.
            left: how many of the cases have no final verdict.

        Raises:
            RunError: the run's plan can't be read.
            OSError: the run's folder can't be read or written.
        """
        self._run.remove_leftovers()
        self._run.plan.add(selected)
        self._run.journal.write("started", **asked, resume=resume, cases=len(selected), left=left)
        self._has_begun = True
        self._predictions.refresh()

    def case_ended(self) -> None:
        """A case ended, in any process."""
        if self._has_begun:
            self._predictions.case_ended()

    def end(self, exit_status: int, *, interrupted: bool) -> None:
        """Write the final predictions and the end of the command. Its reports must have been written before.

        Raises:
            OSError: the run's folder can't be written.
        """
        if not self._has_begun:
            return
        self._predictions.refresh()
        reports = {name: _digest(self._run.path / name) for name in REPORTS if (self._run.path / name).is_file()}
        self._run.journal.write(
            "interrupted" if interrupted else "ended", exit_status=exit_status, reports=reports
        )


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
