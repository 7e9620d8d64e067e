"""Whether Pass@1 is as high as asked for: told only where cases without a verdict could not change it.

A case that has no outcome that counts is open: it was not run, or an infrastructure error says nothing of the
claw. With all open cases taken for failures Pass@1 is reached for sure; with all of them taken for successes it is
missed for sure; what lies between can't be told. So a threshold is never passed because cases broke, nor is it
failed by one broken case of many that has no say in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from evaluation.outcomes import POLICY, Outcome
from records.plan import PlannedCase
from records.run import RunDirectory


class Verdict(StrEnum):
    """What a threshold says of a claw."""

    REACHED = "reached"
    BELOW = "below"
    OPEN = "open"
    """Cases without a verdict decide."""


@dataclass(frozen=True)
class Judged:
    """A claw against the threshold."""

    name: str
    asked: Fraction
    """What Pass@1 must be at the least."""
    low: Fraction
    """Pass@1 if every open case were a failure."""
    high: Fraction
    """Pass@1 if every open case were resolved; without open cases the same."""
    open: int
    cases: int

    @property
    def verdict(self) -> Verdict:
        """Whether it is reached."""
        if self.low >= self.asked:
            return Verdict.REACHED
        return Verdict.BELOW if self.high < self.asked else Verdict.OPEN

    @property
    def line(self) -> str:
        """It in words."""
        told = f"{self.name}: Pass@1 {_percent(self.low)}"
        if self.open:
            told += f" to {_percent(self.high)}, as {self.open} of {self.cases} cases have no verdict that counts"
        after = {
            Verdict.REACHED: f": --min-pass-rate {_percent(self.asked)} is reached",
            Verdict.BELOW: f": below --min-pass-rate {_percent(self.asked)}",
            Verdict.OPEN: f": whether --min-pass-rate {_percent(self.asked)} is reached can't be told; "
            "the same command again runs them",
        }
        return told + after[self.verdict]


def parse_rate(text: str) -> Fraction:
    """A rate as users write it: a share from 0 to 1, or a percentage with its sign.

    Raises:
        ValueError: it is neither; the message says how to write it.
    """
    number, percent = text.strip().removesuffix("%").rstrip(), text.strip().endswith("%")
    # no exponent: the fraction of a large one is as long as it says
    is_number = re.fullmatch(r"\d{1,20}(\.\d{0,20})?|\.\d{1,20}", number, re.ASCII) is not None
    rate = Fraction(number) / (100 if percent else 1) if is_number else Fraction(-1)
    if not 0 <= rate <= 1:
        hint = f", {number}% perhaps" if not percent and 1 < rate <= 100 else ""
        raise ValueError(
            f"--min-pass-rate {text}: write a share from 0 to 1 or a percentage, as in 0.4 or 40%{hint}"
        )
    return rate


def judge(run: RunDirectory, asked: Iterable[PlannedCase], rate: Fraction) -> list[Judged]:
    """Every claw of the cases that a command asked for, by name.

    Args:
        run: where their outcomes are.
        asked: the cases; others of the run are not looked at.
        rate: what Pass@1 must be at the least, as the mean over instances of the mean over samples.
    """
    claws: dict[str, dict[str, list[bool | None]]] = {}
    names: dict[str, str] = {}
    for case in asked:
        metadata = run.case(*case).metadata()
        policy = POLICY[Outcome(metadata["outcome"])] if metadata is not None else None
        result = policy.passes if policy is not None and policy.counts else None
        claws.setdefault(case.claw, {}).setdefault(case.instance_id, []).append(result)
        names[case.claw] = (metadata or {}).get("contender", names.get(case.claw, case.claw))
    return [judge_results(names[claw], list(claws[claw].values()), rate) for claw in sorted(claws)]


def judge_results(name: str, instances: Sequence[Sequence[bool | None]], rate: Fraction) -> Judged:
    """One claw.

    Args:
        name: the claw's.
        instances: of each, what its samples say: whether resolved, or None where one is open. None is empty.
        rate: what Pass@1 must be at the least.
    """

    def pass_at_1(counting_as_resolved: tuple[bool | None, ...]) -> Fraction:
        means = [Fraction(sum(one in counting_as_resolved for one in row), len(row)) for row in instances]
        return sum(means, Fraction(0)) / len(means)

    cases = [one for row in instances for one in row]
    return Judged(name, rate, pass_at_1((True,)), pass_at_1((True, None)), cases.count(None), len(cases))


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.4g}%"
