"""The end of a command: its tables, `summary.json`, and the exit status for `--min-pass-rate`."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from clawbench.pytest_plugin import selection
from clawbench.pytest_plugin.private_names import lacks_workers
from records.case_id import CaseId
from records.run_folder import RunDirectory, RunError
from reports.collected import write_collection
from reports.numbers import Numbers, write_summary
from reports.page.page import PAGE, write_page
from reports.summary import summary_lines
from reports.threshold import Judged, Verdict, judge, parse_rate

BELOW = 10
"""Exit status: Pass@1 of a claw is below the threshold."""
OPEN = 11
"""Exit status: undecided, because cases without a verdict could change the result."""
_NUMBERS = pytest.StashKey[list[Numbers]]()
"""The run's numbers, once `summary.json` is written."""
_THRESHOLD = pytest.StashKey["Threshold"]()


@dataclass
class Threshold:
    """`--min-pass-rate`, as a plugin of the controller: it also sees failures of other tests."""

    rate: Fraction
    judged: list[Judged] = field(default_factory=list)
    _something_else_failed: bool = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note failures that are not outcomes of cases: in other tests, and in teardown."""
        if report.failed and (report.when == "teardown" or selection.case_of(report.nodeid) is None):
            self._something_else_failed = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note files that could not be collected."""
        self._something_else_failed |= report.failed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Print the result, below everything that pytest prints."""
        yield
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            for one in self.judged:
                terminal.write_line(one.line)

    def exit_status(self, before: int) -> int:
        """The exit status of the command.

        Args:
            before: pytest's own; it is changed only if it says "all passed" or "some failed".
        """
        if before not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self._something_else_failed:
            return before
        verdicts = {one.verdict for one in self.judged}
        if Verdict.BELOW in verdicts:
            return BELOW
        return OPEN if Verdict.OPEN in verdicts or not verdicts else int(pytest.ExitCode.OK)


def watch_for(config: pytest.Config) -> None:
    """Register `--min-pass-rate`, if the command has it.

    Raises:
        pytest.UsageError: its value is not a rate.
    """
    text = config.getoption("--min-pass-rate")
    if text is None:
        return
    try:
        threshold = Threshold(parse_rate(text))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_THRESHOLD] = threshold
    config.pluginmanager.register(threshold, "clawbench-threshold")


def conclude(session: pytest.Session, run: RunDirectory, asked: Iterable[CaseId]) -> None:
    """Write `summary.json` and `report.html`, and set the exit status.

    Args:
        session: of the controller; with `--min-pass-rate`, its exit status is set accordingly.
        run: the run.
        asked: the cases that the command selected.

    Raises:
        RunError: the run's plan or a record can't be read.
        OSError: a file can't be read or written.
    """
    if lacks_workers(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERRUPTED  # all tests that ran passed, but some did not run
    threshold = session.config.stash.get(_THRESHOLD, None)
    min_pass_rate: dict[str, Any] | None = None
    if threshold is not None and session.exitstatus != pytest.ExitCode.USAGE_ERROR:  # otherwise nothing was run
        threshold.judged = judge(run, asked, threshold.rate)
        session.exitstatus = threshold.exit_status(int(session.exitstatus))
        min_pass_rate = {
            "rate": float(threshold.rate),
            "claws": {one.name: one.verdict for one in threshold.judged},
        }
    numbers = session.config.stash[_NUMBERS] = write_summary(run, min_pass_rate)
    write_collection(run, [case for claw in numbers for case in claw.cases])
    write_page([run], run.path / PAGE)


def left_open(config: pytest.Config, run: RunDirectory, asked: Collection[CaseId]) -> list[str]:
    """A line about cases that are open because an option ended the command early, and how to resume.

    With `-x` or `--maxfail` the same command would stop again. With `--max-worker-restart`, dead workers are no longer
    replaced once that many have died.

    Args:
        config: of the controller.
        run: the run.
        asked: the cases that the command selected.
    """
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    most = config.getoption("maxfail")
    failures = sum(len(terminal.stats.get(kind, ())) for kind in ("failed", "error")) if terminal else 0
    if most and failures >= most:
        option = "-x or --maxfail"
    elif lacks_workers(config):
        option = "--max-worker-restart"
    else:
        return []
    undone = sum(run.case(case).final_verdict() is None for case in asked)
    if not undone:
        return []
    return [
        f"{undone} of {len(asked)} cases are open because {option} ended the command: the same command without it "
        "resumes"
    ]


def tables(config: pytest.Config, run: RunDirectory) -> list[str]:
    """The run's tables, or why there are none.

    Args:
        config: of the controller.
        run: the run.
    """
    try:
        return summary_lines(run, config.stash.get(_NUMBERS, None))
    except RunError as error:
        return [str(error)]
