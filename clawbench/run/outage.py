"""What happens while the engine or the provider is gone: cases wait for it instead of failing one after the other.

Each worker notices an outage when its own case breaks, and then probes by itself. Whoever has waited in vain leaves a
mark in the run's folder, and no further case begins in this command.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from clawbench.run.case import Case
from common.errors import InfrastructureError
from gateway.case_models import CaseSpec, Ending
from gateway.client import GatewayError
from gateway.probe import ask
from records.progress import PAUSED
from reports.status_view import duration

EVERY = 15.0
"""Seconds between two probes."""
_PATIENCE = 60.0
"""Seconds without data after which the provider counts as gone."""
_ANSWERS: tuple[Ending, ...] = ("ok", "empty", "refused", "unauthorized", "rate_limited", "cost_limit")
"""How the suite's own request ends if the provider is there, whatever it says."""


class ProviderError(InfrastructureError, ConnectionError):
    """The model's provider failed while the claw worked: the case says nothing about the claw."""


class RefusedKeyError(ProviderError):
    """The provider refused the key; a retry would not help."""

    is_retried = False


def probe_provider(case: Case) -> Ending | None:
    """Ask the provider for one word, as a request of the run's own, which no claw has a part in.

    Args:
        case: the case whose model and wire format are used.

    Returns:
        how the request ended; None if the run has no provider, or its gateway is gone.
    """
    context, settings = case.context, case.context.settings
    if not settings.has_provider:
        return None
    name = f"probe-{context.worker}"
    log = context.run.path / "checks" / name / "requests.jsonl"
    spec = CaseSpec(case_id=name, model=settings.model, request_log=log.absolute())
    try:
        ask(context.gateway.open_case(spec), case.api, case.served.name, _PATIENCE)  # type: ignore[arg-type]
        return context.gateway.close_case(name).last_ending or "hung"
    except (GatewayError, LookupError):
        return None


def answers(case: Case) -> bool:
    """Whether the provider completely answers the suite's own request."""
    return probe_provider(case) in ("ok", "empty")


def _gone(case: Case, error: Exception) -> str:
    """What is gone: the engine or, after an error of the provider, the provider; "" if nothing is."""
    if fault := case.context.engine_fault():
        return f"the Docker engine does not answer ({fault})"
    ending = probe_provider(case) if isinstance(error, ProviderError) else None
    return "" if ending is None or ending in _ANSWERS else "the provider does not answer"


def wait_out(
    case: Case,
    error: Exception,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool | None:
    """After an infrastructure error: if it comes from an outage, wait until that is over.

    Args:
        case: the case that broke.
        error: what broke it.
        clock: seconds.
        sleep: waits.

    Returns:
        whether the outage is over; False if it lasted longer than `--outage-limit`; None if there was none.
    """
    limit, mark = case.context.settings.outage_limit, case.context.outage_mark
    gone = _gone(case, error)
    if not gone:
        return None
    until = clock() + limit
    while gone:
        if mark.exists():
            return False
        if clock() >= until:
            with suppress(OSError):  # without the mark, the next case notices the outage itself
                mark.write_text(f"{gone} for {duration(limit)}")
            return False
        case.say(f"{PAUSED}{gone}; it is tried again for at most {duration(limit)}")
        sleep(min(EVERY, max(0.0, until - clock())))
        gone = _gone(case, error)
    case.say("going on after an outage")
    return True
