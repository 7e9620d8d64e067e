"""The part of the pytest plugin that schedules: the hooks by which cases are handed out and run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from clawbench import reporting
from clawbench.case import Case
from clawbench.fixtures import BENCH
from clawbench.scheduling import attempts
from clawbench.selection import case_of, name_of

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

_TOLD = pytest.StashKey[dict[str, bool]]()
"""The cases that a worker has reported, and whether it came to the end of that."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Cases are handed out by a scheduler of our own; other tests are as pytest-xdist does it."""
    bench = config.stash.get(BENCH, None)
    if bench is None:
        return None
    from clawbench.scheduling.handing_out import OneAtATime  # noqa: PLC0415 - nobody else needs pytest-xdist

    def put_back(test_id: str) -> bool | None:
        name, told = case_of(test_id), config.stash.get(_TOLD, {})
        if test_id in told:  # what a worker reports has come to its last attempt
            return None if told[test_id] else False
        return name is not None and attempts.is_run_again_elsewhere(bench, name)

    def is_brief(test_id: str) -> bool:
        name = case_of(test_id)
        return name is not None and name.case_id in bench.order.finished

    attempts_of_each = bench.settings.infra_retries + 1
    return OneAtATime(
        config, log, put_back, attempts_of_each, waits_for_all=not bench.order.finished, is_brief=is_brief
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """A worker of the benchmark runs what it is handed without waiting for more."""
    if BENCH in session.config.stash and hasattr(session.config, "workerinput"):
        from clawbench.scheduling.handing_out import take_one_at_a_time  # noqa: PLC0415 - as above

        take_one_at_a_time(session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A case that infrastructure broke is run again before it is reported."""
    if name_of(item) is None or BENCH not in item.config.stash:
        return None
    attempts.run_with_retries(item, nextitem)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """End what is set up of another module still.

    The item before may not have known that this one comes next, and a verdict that is repeated ends nothing.
    """
    if BENCH in item.config.stash:
        item.session._setupstate.teardown_exact(item)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: Scheduling) -> None:
    """A worker died at a case, and it is not run again: an error, never the claw's failure."""
    found = case_of(crashitem)
    if found is not None:
        is_told = crashitem in sched.config.stash.get(_TOLD, {})
        reporting.amend_crash(Case(sched.config.stash[BENCH], found), report, is_told=is_told)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what has been told of: a worker may die after it."""
    node: WorkerController | None = getattr(report, "node", None)
    if node is not None and (report.when != "setup" or report.failed):
        node.config.stash.setdefault(_TOLD, {})[report.nodeid] = report.when == "teardown"
