"""The attempts at a case within one command: when another one follows, and what pytest reports.

Only the last attempt is reported to pytest, so that every case has one verdict in each report.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Literal

import pytest

from clawbench.pytest_plugin.private_names import run_protocol
from clawbench.pytest_plugin.reporting import BROKE, CASE, CONTEXT, properties, shown_as
from clawbench.run import outage
from clawbench.run.case import Case
from clawbench.run.retries import pause_before
from clawbench.run.worker_context import WorkerContext
from common.errors import ClawbenchError, known_error
from gateway.client import GatewayError
from records.case_id import CaseId
from workspace.owner import sweep

_REASON = 300
"""How many characters of an error are recorded as the reason for a retry."""


def run_with_retries(item: pytest.Item, case_id: CaseId, nextitem: pytest.Item | None) -> None:
    """Run a case, and retry it after infrastructure errors as long as a retry may help; then report it.

    A case that has a final verdict is not set up at all: the verdict is reported.

    Args:
        item: the case's test.
        case_id: the case.
        nextitem: what pytest runs after it.
    """
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = replayed(item.config.stash[CONTEXT], case_id, item.nodeid, item.location, item.keywords)
    if not reports:
        reports = run_protocol(item, nextitem)
        while _is_retried(item):
            reports = run_protocol(item, nextitem)
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if CASE in item.stash:
        del item.stash[CASE]  # pytest keeps every item to the end, and a case holds its row and its prompt


def replayed(
    context: WorkerContext,
    case_id: CaseId,
    node_id: str,
    location: tuple[str, int | None, str],
    keywords: Iterable[str] = (),
) -> Sequence[pytest.TestReport]:
    """The reports of a case that has a final verdict; none for a case that must be run.

    No lock is taken, because nobody works on a case with a final verdict. A worker that a killed run left behind may
    still write to the journal, which does no harm.
    """
    case = Case(context, case_id)
    try:
        metadata = case.final_verdict()
    except (OSError, ClawbenchError):
        return ()  # setting up the case raises the same error, and reports it
    if metadata is None:
        return ()
    moment = time.time()
    words: dict[str, Literal[1]] = dict.fromkeys(keywords, 1)

    def report(when: Literal["setup", "call", "teardown"]) -> pytest.TestReport:
        outcome, why = shown_as(case, metadata) if when == "call" else ("passed", None)
        return pytest.TestReport(node_id, location, words, outcome, why, when, start=moment, stop=moment)

    reports = report("setup"), report("call"), report("teardown")
    reports[-1].user_properties = properties(case, metadata)
    return reports


def _is_retried(item: pytest.Item) -> bool:
    """Whether another attempt follows. If so, waits for the pause before it."""
    error, case = item.stash.get(BROKE, None), item.stash.get(CASE, None)
    if error is None or case is None or item.session.shouldstop or item.session.shouldfail:
        return False
    del item.stash[BROKE]
    if not error.is_retried or (isinstance(error, GatewayError) and not _gateway_answers(case.context)):
        return False
    is_over = outage.wait_out(case, error)
    if is_over is not None:
        return is_over  # an outage does not use up the case's retries
    why = (str(error).splitlines() or [""])[0][:_REASON]
    retry = _counted(case, why)
    if retry is None:
        return False
    pause = pause_before(retry)
    most = case.context.settings.infra_retries
    case.say(f"infrastructure: {why}; run again in {pause:.0f} s ({retry} of {most})")
    time.sleep(pause)
    return True


def _gateway_answers(context: WorkerContext) -> bool:
    """Whether the run's gateway answers. A dead gateway is not restarted, so a retry would be useless."""
    try:
        context.gateway.cost_limit_reached()
    except GatewayError:
        return False
    return True


def _counted(case: Case, why: str) -> int | None:
    """Record the next retry in the journal and return its number; None if no retries are left."""
    retries = case.context.retries
    if len(retries.reasons(case.case_id)) >= case.context.settings.infra_retries:
        return None
    try:
        retry = retries.add(case.case_id, why)
        case.note("retried", retry=retry, why=why)
    except OSError:
        return None  # if retries could not be counted, they would never end
    return retry


def is_retried_elsewhere(context: WorkerContext, case_id: CaseId) -> bool:
    """Clean up after a worker that died while it ran a case, and decide whether the case is retried.

    Args:
        context: the controller's.
        case_id: the case that the worker was running.

    Returns:
        whether the case is run again: it has no final verdict, and retries are left.
    """
    case = Case(context, case_id)
    case.leave_gateway()
    try:
        sweep(context.client)  # the dead worker's claw may still be running
    except Exception as error:
        if known_error(error) is None and not isinstance(error, OSError):
            raise
        # the engine is gone too: the next attempt reports that, and the next run removes the containers
    return case.final_verdict() is None and _counted(case, "its worker process died") is not None


def retry_lines(context: WorkerContext) -> list[str]:
    """What the user is told about retries at the end."""
    counts = context.retries.counts()
    if not counts:
        return []
    cases = "1 case was" if len(counts) == 1 else f"{len(counts)} cases were"
    times = f", {sum(counts)} times in all" if sum(counts) > 1 else ""
    return [f"{cases} run again after infrastructure errors{times}: 'retried' in state.jsonl says why"]
