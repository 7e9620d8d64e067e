"""The results of a run by claw, read once from its cases' folders and its plan, for tables and files.

`summary.json` is what other programs read. It is derived like the tables and can be rewritten at any time. It
covers the whole run, not only the last command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import fmean
from typing import Any

from pydantic import ConfigDict

from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.files import write_json
from records.journal import now
from records.models import CaseRecord, Cost, Part, Tokens
from records.run_folder import RunDirectory
from reports.samples import (
    CONFIDENCE,
    METHOD,
    Agreement,
    PassAtK,
    PassRate,
    agreement,
    most_samples,
    pass_at_1,
    pass_at_k,
)

SUMMARY = "summary.json"


@dataclass
class Numbers:
    """A claw's cases and results."""

    claw: str
    agent_label: str
    """The label of results: the claw, followed by the way of the patch unless that is `workspace`."""
    cases: list[CaseRecord] = field(default_factory=list)
    """The records of all cases with an outcome."""
    results: dict[str, list[bool]] = field(default_factory=dict)
    """By instance, whether each sample that counts was resolved; empty if none counts."""
    without_outcome: list[CaseId] = field(default_factory=list)
    """Planned cases without an outcome."""

    @property
    def outcomes(self) -> dict[Outcome, int]:
        """The number of cases for every outcome."""
        counts = Counter(case.outcome for case in self.cases)
        return {outcome: counts[outcome] for outcome in Outcome}

    @property
    def pass_at_1(self) -> PassRate | None:
        """Pass@1 with its interval; None if nothing counts."""
        return pass_at_1(self.results)

    @property
    def pass_at_1_at_least(self) -> float | None:
        """Pass@1 with every case that does not count, or has no outcome, counted as failed; None without cases."""
        planned = Counter(case.instance_id for case in self.cases)
        planned.update(case.instance_id for case in self.without_outcome)
        passed = {name: sum(samples) for name, samples in self.results.items()}
        shares = [passed.get(name, 0) / count for name, count in planned.items()]
        return fmean(shares) if shares else None

    @property
    def samples(self) -> int:
        """The largest number of samples of an instance."""
        return most_samples(self.results)

    @property
    def pass_at_k(self) -> dict[int, PassAtK]:
        """pass@k for every k up to the number of samples."""
        found = {k: pass_at_k(self.results, k) for k in range(1, self.samples + 1)}
        return {k: value for k, value in found.items() if value is not None}

    @property
    def agreement(self) -> Agreement | None:
        """How far the samples of an instance agree; None with one sample each."""
        return agreement(self.results)

    @property
    def instances_without_a_counted_sample(self) -> list[str]:
        """Instances whose outcomes don't count, so that they are not part of Pass@1."""
        return [name for name, samples in self.results.items() if not samples]

    @property
    def tokens(self) -> dict[str, int | None]:
        """Sums over all cases; None if the value of one case is unknown."""
        asked = [case for case in self.cases if case.tokens is not None]
        is_whole = not any(case.unknown_usage for case in asked)
        found: dict[str, int | None] = {}
        for name in Tokens.model_fields if asked else ():
            counts = [getattr(case.tokens, name) for case in asked]
            found[name] = sum(counts) if is_whole and None not in counts else None
        return found

    @property
    def cache_hit(self) -> float | None:
        """The share of the prompt that was read from the provider's cache; None if unknown."""
        read, fresh = self.tokens.get("cache_read"), self.tokens.get("input")
        return read / (read + fresh) if read is not None and fresh is not None and read + fresh else None

    @property
    def requests(self) -> int | None:
        """Requests to the model, over all cases; None if the number of one case is unknown."""
        return _whole(case.requests for case in self.cases)

    @property
    def turns(self) -> int | None:
        """Complete replies of the model, over all cases; None if the number of one case is unknown."""
        return _whole(case.turns for case in self.cases)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by step, over all cases."""
        total: Counter[str] = Counter()
        for case in self.cases:
            total.update(case.seconds)
        return {name: round(spent, 3) for name, spent in total.items()}

    @property
    def language_groups(self) -> dict[str, PassRate]:
        """Pass@1 by language group."""
        groups = {case.instance_id: case.language_group for case in self.cases}
        return {
            group: rate
            for group in sorted(set(groups.values()))
            if (rate := self.part(group, groups.__getitem__)) is not None
        }

    @property
    def instances(self) -> dict[str, list[SampleRow]]:
        """By instance, its samples that have an outcome."""
        found: dict[str, list[SampleRow]] = {}
        for case in self.cases:
            row = SampleRow(
                sample=case.sample, outcome=case.outcome, seconds=case.seconds.get("agent"), turns=case.turns
            )
            found.setdefault(case.instance_id, []).append(row)
        return found

    def part(self, part: str, part_of: Callable[[str], str]) -> PassRate | None:
        """Pass@1 over the instances of one part, such as a language group; None if nothing counts.

        Args:
            part: the part.
            part_of: the part that an instance belongs to.
        """
        return pass_at_1({name: found for name, found in self.results.items() if part_of(name) == part})

    @property
    def cost_usd(self) -> TotalCost | None:
        """US dollars of all cases; None if nothing has a price."""
        costs = costs_of(self.cases)
        is_whole = all(cost.unpriced == 0 for cost in costs)
        priced = _sum(cost.priced for cost in costs) if is_whole else None
        return TotalCost(priced=priced, told=_sum(cost.told for cost in costs)) if costs else None


class Interval(Part):
    """How the intervals of Pass@1 are computed."""

    confidence: float = CONFIDENCE
    method: str = METHOD


class TotalCost(Part):
    """US dollars of all cases; null if a part of them is unknown."""

    priced: float | None
    """By the price table."""
    told: float | None
    """As the provider itself stated it."""


class SampleRow(Part):
    """One case of an instance."""

    sample: int
    outcome: Outcome
    seconds: float | None
    """Of the claw's work."""
    turns: int | None


class ClawSummary(Part):
    """One claw's numbers, see `Numbers`."""

    model_config = ConfigDict(from_attributes=True)

    claw: str
    agent_label: str
    """The label of results: the claw, followed by the way of the patch unless that is `workspace`."""
    outcomes: dict[Outcome, int]
    """The number of cases for every outcome."""
    pass_at_1: PassRate | None
    """Null if no case counts."""
    pass_at_1_at_least: float | None
    """Pass@1 with every case that does not count, or has no outcome, counted as failed."""
    instances_without_a_counted_sample: list[str]
    without_outcome: list[CaseId]
    """Planned cases that have no outcome."""
    samples: int
    """The largest number of samples of an instance."""
    pass_at_k: dict[int, PassAtK]
    """By k."""
    agreement: Agreement | None
    """How far samples of an instance agree; null with one sample each."""
    tokens: dict[str, int | None]
    """Sums over all cases; null if the value of one case is unknown."""
    cache_hit: float | None
    """The share of the prompt that was read from the provider's cache; null if unknown."""
    requests: int | None
    turns: int | None
    seconds: dict[str, float]
    """By step, over all cases."""
    cost_usd: TotalCost | None
    """Null if nothing has a price."""
    language_groups: dict[str, PassRate]
    """Pass@1 by language group."""
    instances: dict[str, list[SampleRow]]
    """The cases that have an outcome."""


class Summary(Part):
    """`summary.json`."""

    schema_version: int = 1
    """Increased when a reader of the previous version could be misled."""
    run_id: str
    model: str
    written: str
    with_outcome: int
    """Cases that have an outcome."""
    without_outcome: int
    """Planned cases that have none."""
    interval: Interval = Interval()
    claws: list[ClawSummary]
    min_pass_rate: dict[str, Any] | None = None
    """The `rate` of `--min-pass-rate` and the verdict for each of the `claws`; null without the option."""


def numbers_of(run: RunDirectory) -> list[Numbers]:
    """The numbers of every claw that has an outcome or planned cases in the run, sorted by name.

    Raises:
        RunError: the plan or a case's record can't be understood.
        OSError: one can't be read.
    """
    found: dict[str, Numbers] = {}
    names: dict[str, str] = {}
    ended = set()
    for case in sorted(run.cases(), key=lambda case: case.id):
        record = case.metadata()
        if record is None:
            continue
        ended.add(case.id)
        name = names[case.id.claw] = record.agent_label
        claw = found.setdefault(name, Numbers(case.id.claw, name))
        claw.cases.append(record)
        samples = claw.results.setdefault(case.id.instance_id, [])
        if record.policy.counts:
            samples.append(record.policy.passes)
    for missing in sorted(set(run.plan.cases()) - ended):
        name = names.get(missing.claw, missing.claw)
        found.setdefault(name, Numbers(missing.claw, name)).without_outcome.append(missing)
    return [found[name] for name in sorted(found)]


def summary_of(
    run: RunDirectory, numbers: Iterable[Numbers], min_pass_rate: Mapping[str, Any] | None = None
) -> Summary:
    """The content of `summary.json`.

    Args:
        run: the run.
        numbers: of all its claws.
        min_pass_rate: the result of the command's `--min-pass-rate`.
    """
    claws = list(numbers)
    return Summary(
        run_id=run.run_id,
        model=run.manifest().settings.model,
        written=now(),
        with_outcome=sum(len(claw.cases) for claw in claws),
        without_outcome=sum(len(claw.without_outcome) for claw in claws),
        claws=[ClawSummary.model_validate(claw) for claw in claws],
        min_pass_rate=dict(min_pass_rate) if min_pass_rate is not None else None,
    )


def costs_of(cases: Iterable[CaseRecord]) -> list[Cost]:
    """The costs of those cases that got a reply which could have a price."""
    return [case.cost for case in cases if case.cost is not None and not case.cost.is_of_no_reply]


def _whole(counts: Iterable[int | None]) -> int | None:
    """A sum; None if a part of it is unknown."""
    found = list(counts)
    known = [one for one in found if one is not None]
    return sum(known) if len(known) == len(found) else None


def _sum(dollars: Iterable[Decimal | None]) -> float | None:
    found = list(dollars)
    known = [one for one in found if one is not None]
    return float(sum(known)) if len(known) == len(found) else None


def write_summary(run: RunDirectory, min_pass_rate: Mapping[str, Any] | None = None) -> list[Numbers]:
    """Rewrite a run's `summary.json` from its folders.

    Returns:
        the numbers, for the tables.

    Raises:
        RunError: the plan or a case's record can't be understood.
        OSError: a file can't be read or written.
    """
    numbers = numbers_of(run)
    write_json(run.path / SUMMARY, summary_of(run, numbers, min_pass_rate).model_dump(mode="json"))
    return numbers
