"""The attempts of a case within one command: when another follows, and what pytest is told of them.

pytest's reports get the last attempt's alone, so that every case has one verdict in each of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import pytest
from _pytest.runner import runtestprotocol
from docker.errors import DockerException

from clawbench.bench import Bench
from clawbench.case import Case
from clawbench.fixtures import BENCH
from clawbench.names import CaseName
from clawbench.reporting import BROKE, CASE, properties, shown_as, told
from clawbench.scheduling.retries import may_pass, pause_before
from clawbench.selection import name_of
from clawbench.solving import RefusedKeyError
from gateway.client import GatewayError
from workspace.errors import WorkspaceError
from workspace.owner import sweep

_REASON = 300
"""Characters of an error that are kept as the reason of an attempt."""


def run_with_retries(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a case, and again while infrastructure breaks it and another attempt may do better; then report it.

    A case whose verdict stands is not set up at all: the verdict is reported.

    Args:
        item: the case.
        nextitem: what pytest runs after it.
    """
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _repeated(item)
    if not reports:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        while _is_to_be_run_again(item):
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _repeated(item: pytest.Item) -> Sequence[pytest.TestReport]:
    """The reports of a case whose verdict stands, as of one that was run; none for a case that is to be run.

    Nobody is at work on such a case, so it is not locked: a worker that a killed run left behind may still write
    to the journal of it, and no more.
    """
    name = name_of(item)
    if name is None:
        return ()
    case = Case(item.config.stash[BENCH], name)
    try:
        metadata = case.standing()
    except OSError:
        return ()  # it is met again, and told, where the case is set up
    if metadata is None:
        return ()
    now = time.time()

    def report(when: Literal["setup", "call", "teardown"]) -> pytest.TestReport:
        outcome, why = shown_as(case, metadata) if when == "call" else ("passed", None)
        keywords: dict[str, Literal[1]] = dict.fromkeys(item.keywords, 1)
        return pytest.TestReport(item.nodeid, item.location, keywords, outcome, why, when, start=now, stop=now)

    reports = report("setup"), report("call"), report("teardown")
    reports[-1].user_properties = properties(case, metadata)
    return reports


def _is_to_be_run_again(item: pytest.Item) -> bool:
    """Whether another attempt follows; when this returns, it is time for it."""
    error, case = item.stash.get(BROKE, None), item.stash.get(CASE, None)
    if error is None or case is None or item.session.shouldstop or item.session.shouldfail:
        return False
    del item.stash[BROKE]
    if not _may_pass(case.bench, error):
        return False
    why = told(error).splitlines()[0][:_REASON]
    retry = _counted(case, why)
    if retry is None:
        return False
    pause = pause_before(retry)
    most = case.bench.settings.infra_retries
    case.say(f"infrastructure: {why}; run again in {pause:.0f} s ({retry} of {most})")
    time.sleep(pause)
    return True


def _may_pass(bench: Bench, error: BaseException) -> bool:
    if isinstance(error, GatewayError):
        try:
            bench.gateway.totals()
        except GatewayError:
            return False  # it is the run's, and is not started twice
    return may_pass(error) and not isinstance(error, RefusedKeyError)


def _counted(case: Case, why: str) -> int | None:
    """Which retry of the case is to follow, None where it had all of them; the journal has a line of it."""
    retries = case.bench.retries
    if len(retries.reasons(case.case_id)) >= case.bench.settings.infra_retries:
        return None
    try:
        retry = retries.add(case.case_id, why)
        case.note("retried", retry=retry, why=why)
    except OSError:
        return None  # what can't be counted would have no end
    return retry


def is_run_again_elsewhere(bench: Bench, name: CaseName) -> bool:
    """Clear away what a dead worker left of its case.

    Args:
        bench: the controller's.
        name: the case that it was at.

    Returns:
        whether the case is to be run again, which one that has its verdict is not.
    """
    case = Case(bench, name)
    case.leave_gateway()
    # if the engine is gone as well, the next attempt finds it out, and the next run sweeps
    with suppress(DockerException, WorkspaceError, OSError):
        sweep(bench.client)  # its claw may be at work still
    return not case.is_finished and _counted(case, "its worker process died") is not None


def lines(bench: Bench) -> list[str]:
    """What the user is told of them at the end."""
    counts = bench.retries.counts()
    if not counts:
        return []
    one = len(counts) == 1
    cases = "1 case was" if one else f"{len(counts)} cases were"
    times = f", {sum(counts)} times in all" if sum(counts) > 1 else ""
    return [f"{cases} run again after infrastructure errors{times}: 'retried' in state.jsonl says why"]
