"""Whether Pass@1 reaches a threshold; decided only if cases without a verdict could not change the result.

A case without an outcome that counts is open: it was not run, or an infrastructure error ended it. The threshold
is reached if Pass@1 reaches it with all open cases counted as failures, and missed if Pass@1 misses it with all of
them counted as successes. In between it is undecided. So errors never help to pass a threshold, and one broken
case among many does not fail it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from records.case_id import CaseId
from records.run_folder import RunDirectory


class Verdict(StrEnum):
    """The result for a claw."""

    REACHED = "reached"
    BELOW = "below"
    OPEN = "open"
    """It depends on cases without a verdict."""


@dataclass(frozen=True)
class Judged:
    """A claw compared with the threshold."""

    name: str
    asked: Fraction
    """The threshold."""
    low: Fraction
    """Pass@1 if every open case failed."""
    high: Fraction
    """Pass@1 if every open case was resolved."""
    open: int
    cases: int

    @property
    def verdict(self) -> Verdict:
        """Whether the threshold is reached."""
        if self.low >= self.asked:
            return Verdict.REACHED
        return Verdict.BELOW if self.high < self.asked else Verdict.OPEN

    @property
    def line(self) -> str:
        """The result in one line."""
        told = f"{self.name}: Pass@1 {_percent(self.low)}"
        if self.open:
            told += f" to {_percent(self.high)}, as {self.open} of {self.cases} cases have no verdict that counts"
        after = {
            Verdict.REACHED: f": --min-pass-rate {_percent(self.asked)} is reached",
            Verdict.BELOW: f": below --min-pass-rate {_percent(self.asked)}",
            Verdict.OPEN: f": whether --min-pass-rate {_percent(self.asked)} is reached depends on them; "
            "run the same command again",
        }
        return told + after[self.verdict]


def parse_rate(text: str) -> Fraction:
    """Parse `--min-pass-rate`: a share from 0 to 1, or a percentage with its sign.

    Raises:
        ValueError: it is neither; the message says how to write it.
    """
    number, percent = text.strip().removesuffix("%").rstrip(), text.strip().endswith("%")
    # no exponents: the fraction of a large one would have as many digits
    is_number = re.fullmatch(r"\d{1,20}(\.\d{0,20})?|\.\d{1,20}", number, re.ASCII) is not None
    rate = Fraction(number) / (100 if percent else 1) if is_number else Fraction(-1)
    if not 0 <= rate <= 1:
        hint = f", {number}% perhaps" if not percent and 1 < rate <= 100 else ""
        raise ValueError(
            f"--min-pass-rate {text}: write a share from 0 to 1 or a percentage, as in 0.4 or 40%{hint}"
        )
    return rate


def judge(run: RunDirectory, asked: Iterable[CaseId], rate: Fraction) -> list[Judged]:
    """Compare every claw with a threshold, sorted by claw.

    Args:
        run: the run.
        asked: the cases that the command selected; the run's other cases are ignored.
        rate: the threshold for Pass@1, which is the mean over instances of the mean over samples.

    Raises:
        RunError: a case's record can't be understood.
    """
    claws: dict[str, dict[str, list[bool | None]]] = {}
    names: dict[str, str] = {}
    for case in asked:
        record = run.case(case).metadata()
        result = record.policy.passes if record is not None and record.policy.counts else None
        claws.setdefault(case.claw, {}).setdefault(case.instance_id, []).append(result)
        names[case.claw] = record.agent_label if record is not None else names.get(case.claw, case.claw)
    return [judge_results(names[claw], list(claws[claw].values()), rate) for claw in sorted(claws)]


def judge_results(name: str, instances: Sequence[Sequence[bool | None]], rate: Fraction) -> Judged:
    """Compare one claw with a threshold.

    Args:
        name: the claw's name.
        instances: for each, whether its samples were resolved, with None for an open one; no instance is empty.
        rate: the threshold for Pass@1.
    """

    def pass_at_1(counting_as_resolved: tuple[bool | None, ...]) -> Fraction:
        means = [Fraction(sum(one in counting_as_resolved for one in row), len(row)) for row in instances]
        return sum(means, Fraction(0)) / len(means)

    cases = [one for row in instances for one in row]
    return Judged(name, rate, pass_at_1((True,)), pass_at_1((True, None)), cases.count(None), len(cases))


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.4g}%"
