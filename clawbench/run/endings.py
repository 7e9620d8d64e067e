"""How a claw's run ended, according to the gateway's counts; the exit code alone is not enough."""

from __future__ import annotations

from collections.abc import Callable

from adapters.base import CommandResult
from evaluation.outcomes import Ending
from gateway.case_models import CaseCounts

_PROVIDER_FAULTS = {
    "unauthorized": ("the provider refused the key or the account", "401"),
    "rate_limited": ("the provider's rate limit", "429"),
    "server_error": ("the provider failed", "5xx"),
    "malformed": ("the provider's answer was malformed", ""),
    "dropped": ("the provider broke the connection off", ""),
    "hung": ("the provider did not answer", ""),
}
"""Endings of a request that are not the claw's fault: the text to report, and its default detail. Claws exit with 0 after
some of them. A claw that leaves a request which the rate limit holds back has ended by itself."""
_MAY_BE_CAUSED = {"server_error", "malformed", "dropped", "hung"}
"""The faults that a request itself can provoke, so that they are the claw's own if the provider answers another request.
Key, account and rate limits are the run's."""
_LONGEST = 250
"""How many characters of a provider's error a case's detail keeps."""


def ending_of(
    result: CommandResult,
    counts: CaseCounts,
    limit_reached: Callable[[CaseCounts], Ending] = lambda _: Ending.COST_LIMIT,
    provider_answers: Callable[[], bool] = lambda: False,
    max_turns: int | None = None,
) -> tuple[Ending, str]:
    """How the claw's run ended, according to the gateway's counts.

    Args:
        result: of the claw's command.
        counts: the gateway's counts of the case.
        limit_reached: which spend limit refused a request; called only if one did.
        provider_answers: whether the provider answers the suite's own request; called only if the claw's last one failed.
        max_turns: the limit of turns that the claw was given; None if there is none.

    Returns:
        the ending, and one line of detail.
    """
    if counts.replay_diff:
        # a replay checks that the adapter behaves as recorded; here it did not, so the case fails whatever came next
        return Ending.AGENT_ERROR, f"it did not behave as recorded: {counts.replay_diff}"
    last = counts.last_ending
    # once a spend limit refused a request, the claw was ended or did nothing more
    if counts.endings["cost_limit"] and (last == "cost_limit" or result.timed_out):
        ending = limit_reached(counts)
        whose = "its own" if ending is Ending.COST_LIMIT else "the run's"
        return ending, f"ended at {whose} spend limit after {counts.turns} turns"
    # if the model hangs until the time is up, that is a timeout, as with any slow model
    if last in _PROVIDER_FAULTS and not (last == "hung" and result.timed_out):
        what, status = _PROVIDER_FAULTS[last]
        if last in _MAY_BE_CAUSED and provider_answers():
            own = f"its last request failed: {what}{_told(counts, status)}, and answered another request right afterwards"
            return Ending.TIMEOUT if result.timed_out else Ending.AGENT_ERROR, own
        return Ending.INFRASTRUCTURE, what + _told(counts, status)
    if not result.timed_out and last in {None, "refused"}:  # "refused" only if every request was
        what = "all its requests were refused" if counts.requests else "never asked the model"
        return Ending.AGENT_ERROR, f"it exited with code {result.exit_code} and {what}" + _told(counts)
    nothing = "the model's last answer was empty" if last == "empty" else ""
    used_up = f"it used up its {max_turns} turns" if max_turns and counts.turns >= max_turns else ""
    ending, why = ending_without_gateway(result, f" after {counts.turns} turns")
    return ending, "; ".join(filter(None, (why, used_up, nothing)))


def _told(counts: CaseCounts, otherwise: str = "") -> str:
    """The error that the last request ended with, on one line."""
    text = " ".join(counts.last_error.split())[:_LONGEST] or otherwise
    return f" ({text})" if text else ""


def ending_without_gateway(result: CommandResult, when: str = "") -> tuple[Ending, str]:
    """How the claw's run ended, if there was no gateway.

    Args:
        result: of the claw's command.
        when: added to the detail of a run that failed.
    """
    if result.timed_out:
        return Ending.TIMEOUT, f"its time was used up after {result.seconds:.0f} s"
    if result.exit_code != 0:
        return Ending.AGENT_ERROR, f"it exited with code {result.exit_code}{when}"
    return Ending.FINISHED, ""
