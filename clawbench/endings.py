"""How a claw's run ended, told from what the gateway saw: an exit code alone is not the ending."""

from __future__ import annotations

from collections.abc import Callable

from adapters.base import CommandResult
from evaluation.outcomes import Ending
from gateway.models import CaseCounts

_PROVIDER_FAULTS = {
    "unauthorized": ("the provider refused the key", "401"),
    "rate_limited": ("the provider's rate limit", "429"),
    "server_error": ("the provider failed", "5xx"),
    "malformed": ("the provider's answer was malformed", ""),
    "dropped": ("the provider broke the connection off", ""),
    "hung": ("the provider did not answer", ""),
    "held_back": ("the claw gave up on a request that the provider's rate limit held back", ""),
}
"""Endings of a request that are not the claw's doing. Claws exit 0 on some of them: the gateway knows.

Each with what it is called where nobody said more of it."""
_LONGEST = 250
"""Characters of a provider's error that a case's detail has."""


def ending_of(
    result: CommandResult, counts: CaseCounts, limit: Callable[[CaseCounts], Ending] = lambda _: Ending.BUDGET
) -> tuple[Ending, str]:
    """How the claw's run ended, by what the gateway saw; an exit code alone is not the ending.

    Args:
        result: of the claw.
        counts: of the case.
        limit: asked where a request was refused for money: which spend limit it was.
    """
    if counts.departure:
        # a replay shows that the adapter does as it did; here it did not, whatever the claw made of it
        return Ending.AGENT_ERROR, f"it did not do as it was recorded: {counts.departure}"
    last = counts.last_ending
    # whoever was refused for money has been ended for it, or did no more
    if counts.endings["budget"] and (last == "budget" or result.timed_out):
        ending = limit(counts)
        whose = "its own" if ending is Ending.BUDGET else "the run's"
        return ending, f"ended at {whose} spend limit after {counts.turns} turns"
    # a model that hangs, or is waited for, until the budget is used up is a timeout, as for any slow model
    if last in _PROVIDER_FAULTS and not (last in ("hung", "held_back") and result.timed_out):
        what, status = _PROVIDER_FAULTS[last]
        return Ending.INFRASTRUCTURE, what + _told(counts, status)
    if not result.timed_out and last in {None, "refused"}:  # "refused" it is only where all were
        what = "every request of it was refused" if counts.requests else "never asked the model"
        return Ending.AGENT_ERROR, f"it ended with {result.exit_code} and {what}" + _told(counts)
    nothing = "the model's last answer was empty" if last == "empty" else ""
    ending, why = ending_without_gateway(result, f" after {counts.turns} turns")
    return ending, "; ".join(filter(None, (why, nothing)))


def _told(counts: CaseCounts, otherwise: str = "") -> str:
    """What was said of the last request, on one line."""
    text = " ".join(counts.last_error.split())[:_LONGEST] or otherwise
    return f" ({text})" if text else ""


def ending_without_gateway(result: CommandResult, when: str = "") -> tuple[Ending, str]:
    """How the claw's run ended, where nobody saw what its provider did.

    Args:
        result: of the claw.
        when: more on the moment, for the case that it ended badly by itself.
    """
    if result.timed_out:
        return Ending.TIMEOUT, f"ended at its budget after {result.seconds:.0f} s"
    if result.exit_code != 0:
        return Ending.AGENT_ERROR, f"it ended with {result.exit_code}{when}"
    return Ending.FINISHED, ""
