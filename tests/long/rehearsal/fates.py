"""How a rehearsed case is to end: drawn from its id alone, so that every attempt at it comes to the same.

The patch carries the fate to the judge, as a real patch carries what the tests will say: nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from evaluation.outcomes import Ending, Outcome, Verdict, outcome_of

_LINES = (1, 12, 60, 400)
"""Of patches: most are small, and a few are not."""


@dataclass(frozen=True)
class Fate:
    """How a case ends: what the claw does, and what the judge says of it."""

    ending: Ending
    verdict: Verdict
    """NOT_JUDGED: the claw leaves no change."""

    @property
    def outcome(self) -> Outcome:
        """What the case must count as in the end."""
        return outcome_of(self.ending, self.verdict)


_PARTS: tuple[tuple[int, Fate], ...] = (
    (45, Fate(Ending.FINISHED, Verdict.RESOLVED)),
    (20, Fate(Ending.FINISHED, Verdict.UNRESOLVED)),
    (10, Fate(Ending.FINISHED, Verdict.NOT_JUDGED)),
    (5, Fate(Ending.FINISHED, Verdict.APPLY_FAILED)),
    (3, Fate(Ending.TIMEOUT, Verdict.RESOLVED)),
    (7, Fate(Ending.TIMEOUT, Verdict.UNRESOLVED)),
    (5, Fate(Ending.AGENT_ERROR, Verdict.NOT_JUDGED)),
    (5, Fate(Ending.AGENT_ERROR, Verdict.UNRESOLVED)),
)
"""Of a hundred cases each."""


def fate_of(case_id: str) -> Fate:
    """The fate of a case."""
    left = _number(case_id, "fate") % sum(part for part, _ in _PARTS)
    for part, fate in _PARTS:
        left -= part
        if left < 0:
            return fate
    raise AssertionError("the parts add up")


def patch_of(case_id: str) -> str:
    """What the claw leaves of a case: a diff that adds one file, or nothing."""
    fate = fate_of(case_id)
    if fate.verdict is Verdict.NOT_JUDGED:
        return ""
    count = _LINES[_number(case_id, "lines") % len(_LINES)]
    lines = [f"verdict: {fate.verdict}", *(f"{case_id}, line {number} \u00e9\u2028" for number in range(count))]
    head = f"--- /dev/null\n+++ b/{case_id}.txt\n@@ -0,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


def verdict_in(patch: str) -> Verdict:
    """What the judge says of a patch.

    Raises:
        ValueError: no rehearsed claw made it, or not all of it is there.
    """
    lines = patch.split("\n")
    if len(lines) < 5 or lines[2] != f"@@ -0,0 +1,{len(lines) - 4} @@" or not lines[3].startswith("+verdict: "):
        raise ValueError(f"not a patch of a rehearsal: {patch[:100]!r}")
    return Verdict(lines[3].removeprefix("+verdict: "))


def _number(case_id: str, what: str) -> int:
    return int.from_bytes(sha256(f"{what} {case_id}".encode()).digest()[:8], "big")
