"""Hooks that distribute cases to workers and retry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from clawbench.pytest_plugin import attempts, reporting
from clawbench.pytest_plugin.private_names import take_one_at_a_time
from clawbench.pytest_plugin.reporting import CONTEXT
from clawbench.pytest_plugin.selection import case_of, case_of_item
from clawbench.run.case import Case
from evaluation.lists import by_id

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling


class CaseScheduling:
    """A plugin of the controller and of each worker of a run."""

    def __init__(self, config: pytest.Config) -> None:
        """Serve the process that has this configuration."""
        self._config = config
        self._reported: dict[str, bool] = {}
        """The tests that workers have reported, each with whether its teardown was reported too."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self) -> Scheduling:
        """Send cases to workers one at a time."""
        from xdist.workermanage import parse_tx_spec_config  # noqa: PLC0415 - only needed with workers

        from clawbench.pytest_plugin.one_at_a_time import OneAtATime  # noqa: PLC0415 - as above

        return OneAtATime(
            len(parse_tx_spec_config(self._config)),
            replay=self._replay,
            put_back=self._put_back,
            attempts=self._config.stash[CONTEXT].settings.infra_retries + 1,
        )

    def _replay(self, test_id: str) -> bool:
        """If a case has a final verdict, report it; returns whether it has one."""
        case_id, context = case_of(test_id), self._config.stash[CONTEXT]
        if case_id is None or str(case_id) not in context.order.finished:
            return False
        file, _, name = test_id.partition("::")
        keywords = (name.partition("[")[0], *by_id()[case_id.instance_id].markers)
        reports = attempts.replayed(context, case_id, test_id, (file, None, name), keywords)
        for report in reports:
            self._config.hook.pytest_runtest_logreport(report=report)
        session: Any = self._config.pluginmanager.get_plugin("session")
        if session.shouldfail:  # -x or --maxfail: pytest-xdist counts the reports of workers alone
            pytest.exit(str(session.shouldfail), returncode=int(pytest.ExitCode.INTERRUPTED))
        return bool(reports)

    def _put_back(self, test_id: str) -> bool | None:
        """See `OneAtATime`."""
        if test_id in self._reported:  # a worker reports a case after its last attempt
            return None if self._reported[test_id] else False
        case_id = case_of(test_id)
        return case_id is not None and attempts.is_retried_elsewhere(self._config.stash[CONTEXT], case_id)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Make a worker run each test as soon as it gets it."""
        if hasattr(self._config, "workerinput"):
            take_one_at_a_time(session)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a case again after an infrastructure error, before it is reported."""
        case_id = case_of_item(item)
        if case_id is None:
            return None
        attempts.run_with_retries(item, case_id, nextitem)
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Report a case whose worker died and that is not retried, as an error, never as a failure of the claw."""
        case_id = case_of(crashitem)
        if case_id is not None:
            is_reported = crashitem in self._reported
            reporting.amend_crash(Case(self._config.stash[CONTEXT], case_id), report, is_reported=is_reported)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what workers have reported, because a worker can die after its report."""
        if hasattr(report, "node") and (report.when != "setup" or report.failed):
            self._reported[report.nodeid] = report.when == "teardown"
