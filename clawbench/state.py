"""The controller's account of a run: what each command asked for and how it ended, and the predictions so far."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from evaluation.outcomes import POLICY, Outcome
from records.case import CaseFolder
from records.plan import PlannedCase
from records.predictions import Refresher
from records.run import RunDirectory

REPORTS = ("junit.xml", "report.json", "summary.json")
"""What the last command under a run id left of its end."""


def verdict_of(folder: CaseFolder) -> dict[str, Any] | None:
    """The metadata of a case with an outcome that no rerun asks for again, and the patch that it is of; else None.

    Raises:
        ValueError: its outcome is none that this version knows.
    """
    metadata = folder.metadata()
    if metadata is None or POLICY[Outcome(metadata["outcome"])].run_again:
        return None
    export = folder.export()
    return metadata if export is not None and export["is_final"] else None


class StateKeeper:
    """Registered as a plugin, it sees every report of a case. Nothing here is done in a worker."""

    def __init__(self, run: RunDirectory) -> None:
        """Take over a run that this process holds."""
        self._run = run
        self._predictions = Refresher(run)
        self._has_begun = False

    def begin(self, selected: Collection[PlannedCase], config: pytest.Config, *, resume: bool, left: int) -> None:
        """Write down what this command asks for, and make good what a killed one left.

        Args:
            selected: its cases.
            config: of the controller.
            resume: whether what has ended stays.
            left: how many of its cases have no verdict that stays.

        Raises:
            PlanError: the run's plan can't be read.
            OSError: the run's folder can't be read or written.
        """
        self._run.remove_leftovers()
        self._run.plan.add(selected)
        self._run.journal.write("started", **_asked(config), resume=resume, cases=len(selected), left=left)
        self._has_begun = True
        self._predictions.refresh()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A step of a case ended, in whichever process."""
        if report.when == "teardown" and self._has_begun:
            self._predictions.case_ended()

    def end(self, exit_status: int) -> None:
        """Write the predictions once more, and how the command ended; pytest's reports are there by now.

        Raises:
            OSError: the run's folder can't be written.
        """
        if not self._has_begun:
            return
        self._predictions.refresh()
        reports = {name: _digest(self._run.path / name) for name in REPORTS if (self._run.path / name).is_file()}
        event = "interrupted" if exit_status == pytest.ExitCode.INTERRUPTED else "ended"
        self._run.journal.write(event, exit_status=int(exit_status), reports=reports)


def _asked(config: pytest.Config) -> dict[str, Any]:
    """The command as far as it says which cases it means and by how many at once; no path of this machine."""
    option = config.option
    told = {
        "keyword": option.keyword,
        "markers": option.markexpr,
        "tests": [argument.partition("::")[2] for argument in config.args if "::" in argument],
        "instances": Path(option.instances).name if option.instances else "",
        "workers": len(getattr(option, "tx", None) or ()),
    }
    return {name: value for name, value in told.items() if value}


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
