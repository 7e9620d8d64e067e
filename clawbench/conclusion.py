"""The end of a command: its tables, `summary.json`, and the exit status of `--min-pass-rate`."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from clawbench import selection
from clawbench.state import verdict_of
from records.plan import PlanError, PlannedCase
from records.run import RunDirectory
from reports.numbers import Numbers, write_summary
from reports.summary import summary_lines
from reports.threshold import Judged, Verdict, judge, parse_rate

BELOW = 10
"""Exit status: Pass@1 of a claw is below the threshold."""
OPEN = 11
"""Exit status: it can't be told, as cases have no verdict that counts."""
_NUMBERS = pytest.StashKey[list[Numbers]]()
"""What the run says, once it is concluded."""
_THRESHOLD = pytest.StashKey["Threshold"]()


@dataclass
class Threshold:
    """`--min-pass-rate`, as a plugin of the controller: it also sees what fails beside the cases."""

    rate: Fraction
    judged: list[Judged] = field(default_factory=list)
    _something_else_failed: bool = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See failures that no outcome of a case tells of: of other tests, and of giving things back."""
        if report.failed and (report.when == "teardown" or selection.case_of(report.nodeid) is None):
            self._something_else_failed = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """See what could not be collected."""
        self._something_else_failed |= report.failed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Say what came of it, below all that pytest itself tells at the end."""
        yield
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            for one in self.judged:
                terminal.write_line(one.line)

    def exit_status(self, before: int) -> int:
        """What the command ends with.

        Args:
            before: what pytest would end with; what is neither "all passed" nor "some failed" stays.
        """
        if before not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self._something_else_failed:
            return before
        verdicts = {one.verdict for one in self.judged}
        if Verdict.BELOW in verdicts:
            return BELOW
        return OPEN if Verdict.OPEN in verdicts or not verdicts else int(pytest.ExitCode.OK)


def watch_for(config: pytest.Config) -> None:
    """Take up `--min-pass-rate`, where the command has it.

    Raises:
        pytest.UsageError: what it says is no rate.
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


def conclude(session: pytest.Session, run: RunDirectory, asked: Iterable[PlannedCase]) -> None:
    """Write `summary.json` and settle the exit status.

    Args:
        session: of the controller; its exit status becomes the threshold's.
        run: the run.
        asked: the cases that the command meant.

    Raises:
        PlanError: the run's plan can't be read.
        OSError: the file can't be written.
    """
    if _lacks_workers(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERRUPTED  # all is well with those that were run
    threshold = session.config.stash.get(_THRESHOLD, None)
    more: dict[str, Any] = {}
    if threshold is not None and session.exitstatus != pytest.ExitCode.USAGE_ERROR:  # else nothing was run
        threshold.judged = judge(run, asked, threshold.rate)
        session.exitstatus = threshold.exit_status(int(session.exitstatus))
        more["min_pass_rate"] = {
            "rate": float(threshold.rate),
            "claws": {one.name: one.verdict for one in threshold.judged},
        }
    session.config.stash[_NUMBERS] = write_summary(run, more)


def _lacks_workers(config: pytest.Config) -> bool:
    """Whether pytest-xdist ended the command before its time, as more workers had died than may be replaced."""
    return bool(getattr(config.pluginmanager.get_plugin("dsession"), "_summary_report", None))


def left_open(config: pytest.Config, run: RunDirectory, asked: Collection[PlannedCase]) -> list[str]:
    """What an option left undone that ended the command.

    With `-x` or `--maxfail` no later one gets any further, and `--max-worker-restart` has workers not replaced.

    Args:
        config: of the controller.
        run: the run.
        asked: the cases that the command meant.
    """
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    most = config.getoption("maxfail")
    failures = sum(len(terminal.stats.get(kind, ())) for kind in ("failed", "error")) if terminal else 0
    if most and failures >= most:
        option = "-x or --maxfail"
    elif _lacks_workers(config):
        option = "--max-worker-restart"
    else:
        return []
    undone = sum(verdict_of(run.case(*case)) is None for case in asked)
    if not undone:
        return []
    return [
        f"{undone} of {len(asked)} cases are open, as {option} ended the command: the same command without "
        "it goes on with them"
    ]


def tables(config: pytest.Config, run: RunDirectory) -> list[str]:
    """The run's tables, or why there are none.

    Args:
        config: of the controller.
        run: the run.
    """
    try:
        return summary_lines(run, config.stash.get(_NUMBERS, None))
    except PlanError as error:
        return [str(error)]
