"""How a case can end, and what follows from it: the only such list in the suite."""

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
    BUDGET = "budget"
    AGENT_ERROR = "agent_error"
    RUN_BUDGET = "run_budget"
    INFRASTRUCTURE = "infrastructure"


class Ending(StrEnum):
    """How the claw's run ended, whatever became of its patch."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    """The case's own spend limit was reached: a budget as the wall clock is one."""
    AGENT_ERROR = "agent_error"
    RUN_BUDGET = "run_budget"
    """The run's spend limit was reached, by all its cases together: nothing that this claw did."""
    INFRASTRUCTURE = "infrastructure"

    @property
    def is_final(self) -> bool:
        """Whether what was exported is the claw's last word, and not only what was there when it was cut off."""
        return self not in {Ending.RUN_BUDGET, Ending.INFRASTRUCTURE}


class Verdict(StrEnum):
    """What the official harness said of a patch."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    APPLY_FAILED = "apply_failed"
    NOT_JUDGED = "not_judged"
    """There was nothing to judge."""


@dataclass(frozen=True)
class Policy:
    """What follows from an outcome."""

    passes: bool
    """Whether the pytest case passes."""
    is_error: bool
    """Shown by pytest as an error, never as a failure: it says nothing of the claw."""
    run_again: bool
    """Whether a rerun of the same run id runs the case again."""
    counts: bool
    """Whether the case is in the denominator of Pass@1."""
    meaning: str


POLICY: dict[Outcome, Policy] = {
    Outcome.RESOLVED: Policy(True, False, False, True, "the official harness resolved it"),
    Outcome.UNRESOLVED: Policy(False, False, False, True, "the patch applied, the tests say no"),
    Outcome.EMPTY_PATCH: Policy(False, False, False, True, "the claw left no change"),
    Outcome.APPLY_FAILED: Policy(False, False, False, True, "the harness could not apply the patch"),
    Outcome.TIMEOUT: Policy(
        False, False, False, True, "the budget was used up and what was left does not resolve it"
    ),
    Outcome.BUDGET: Policy(
        False, False, False, True, "the case's spend limit was used up and what was left does not resolve it"
    ),
    Outcome.AGENT_ERROR: Policy(False, False, False, True, "the claw failed and what it left does not resolve it"),
    Outcome.RUN_BUDGET: Policy(
        False, True, True, False, "the run's spend limit was reached while the claw was at work"
    ),
    Outcome.INFRASTRUCTURE: Policy(
        False, True, True, False, "Docker, an image, the gateway, the provider or the evaluation broke"
    ),
}


def outcome_of(ending: Ending, verdict: Verdict) -> Outcome:
    """What a case counts as.

    A patch that resolves passes however the claw ended, as in the paper (Claw-SWE-Bench, 2026): whatever was
    left at the end of the budget is judged. That holds for a budget in dollars as well, if it is the case's own; a
    case that the run's spend limit cut off had less than others, is not judged, and is run again. Otherwise the
    ending, where it was not an orderly one, says more than the verdict does.

    Args:
        ending: how the claw's run ended.
        verdict: what the harness said of the exported patch; NOT_JUDGED stands for an empty one.
    """
    if not ending.is_final:
        return Outcome(ending)
    if verdict is Verdict.RESOLVED:
        return Outcome.RESOLVED
    if ending is not Ending.FINISHED:
        return Outcome(ending)
    return {
        Verdict.UNRESOLVED: Outcome.UNRESOLVED,
        Verdict.APPLY_FAILED: Outcome.APPLY_FAILED,
        Verdict.NOT_JUDGED: Outcome.EMPTY_PATCH,
    }[verdict]
