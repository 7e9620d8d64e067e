"""How a case can end and what follows from it: the only such table in the suite."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a case counts as."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    EMPTY_PATCH = "empty_patch"
    APPLY_FAILED = "apply_failed"
    TIMEOUT = "timeout"
    COST_LIMIT = "cost_limit"
    AGENT_ERROR = "agent_error"
    RUN_COST_LIMIT = "run_cost_limit"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True)
class Policy:
    """What follows from an outcome."""

    meaning: str
    passes: bool = False
    """Whether the pytest case passes."""
    is_error: bool = False
    """Whether pytest shows an error instead of a failure, because the outcome says nothing about the claw."""
    run_again: bool = False
    """Whether resuming the run runs the case again."""
    counts: bool = True
    """Whether the case is in the denominator of Pass@1."""
    is_judged: bool = True
    """Whether the official harness judges what the claw left in a case that ended this way."""


POLICY: dict[Outcome, Policy] = {
    Outcome.RESOLVED: Policy("the official harness resolved it", passes=True),
    Outcome.UNRESOLVED: Policy("the patch applied, the tests say no"),
    Outcome.EMPTY_PATCH: Policy("the claw left no change"),
    Outcome.APPLY_FAILED: Policy("the harness could not apply the patch"),
    Outcome.TIMEOUT: Policy("the budget was used up and what was left does not resolve it"),
    Outcome.COST_LIMIT: Policy("the case's spend limit was used up and what was left does not resolve it"),
    Outcome.AGENT_ERROR: Policy("the claw failed and what it left does not resolve it"),
    Outcome.RUN_COST_LIMIT: Policy(
        "the run's spend limit was reached while the claw was at work",
        is_error=True,
        run_again=True,
        counts=False,
        is_judged=False,
    ),
    Outcome.INFRASTRUCTURE: Policy(
        "Docker, an image, the gateway, the provider or the evaluation broke",
        is_error=True,
        run_again=True,
        counts=False,
        is_judged=False,
    ),
}


class Ending(StrEnum):
    """How the claw's run ended, whatever its patch is worth; all but FINISHED are outcomes as well."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    COST_LIMIT = "cost_limit"
    """The case's own spend limit was reached; it is a budget like the wall clock."""
    AGENT_ERROR = "agent_error"
    RUN_COST_LIMIT = "run_cost_limit"
    """The spend limit of the whole run was reached, through no fault of this claw."""
    INFRASTRUCTURE = "infrastructure"

    @property
    def is_final(self) -> bool:
        """Whether the exported patch is the claw's result, and not only what it had when it was cut off."""
        return self is Ending.FINISHED or POLICY[Outcome(self)].is_judged


class Verdict(StrEnum):
    """What the official harness said about a patch."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    APPLY_FAILED = "apply_failed"
    NOT_JUDGED = "not_judged"
    """There was nothing to judge."""


_OF_FINISHED = {
    Verdict.RESOLVED: Outcome.RESOLVED,
    Verdict.UNRESOLVED: Outcome.UNRESOLVED,
    Verdict.APPLY_FAILED: Outcome.APPLY_FAILED,
    Verdict.NOT_JUDGED: Outcome.EMPTY_PATCH,
}


def outcome_of(ending: Ending, verdict: Verdict) -> Outcome:
    """What a case counts as.

    A resolving patch passes however the claw ended, as in the paper (Claw-SWE-Bench, 2026): what is left when the
    budget is used up is judged. That includes the case's own spend limit. A case that the run's spend limit cut
    off had a smaller budget than others, so it is not judged, but run again. Otherwise an ending other than
    FINISHED says more than the verdict.

    Args:
        ending: how the claw's run ended.
        verdict: what the harness said about the exported patch; NOT_JUDGED stands for an empty one.
    """
    if ending is Ending.FINISHED or (ending.is_final and verdict is Verdict.RESOLVED):
        return _OF_FINISHED[verdict]
    return Outcome(ending)
