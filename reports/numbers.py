"""A run's numbers, claw by claw: read once from its cases' folders and its plan, for all that shows them.

`summary.json` is what other programs read of a run. It is derived, like the table: it can be made again at any
time from the folders (`write_summary`), and it tells of all that the run holds, not of the last command alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from evaluation.outcomes import POLICY, Outcome
from records.files import write_json
from records.journal import now
from records.plan import PlannedCase
from records.run import RunDirectory
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
SCHEMA = 1
"""Of `summary.json`: another number where a reader of the former could be misled."""

Metadata = dict[str, Any]


@dataclass
class Numbers:
    """What a run says of one claw."""

    claw: str
    name: str
    """As tables and predictions name it: the claw, with what was left of its adapter."""
    cases: list[Metadata] = field(default_factory=list)
    """The metadata of all cases that have an outcome."""
    results: dict[str, list[bool]] = field(default_factory=dict)
    """Per instance, whether each of its samples that count was resolved; empty where none counts."""
    missing: list[PlannedCase] = field(default_factory=list)
    """What was asked for and has no outcome."""

    @property
    def outcomes(self) -> dict[Outcome, int]:
        """How many cases have which outcome; all outcomes are in it."""
        counts = Counter(Outcome(case["outcome"]) for case in self.cases)
        return {outcome: counts[outcome] for outcome in Outcome}

    @property
    def rate(self) -> PassRate | None:
        """Pass@1 and its interval; None where nothing counts."""
        return pass_at_1(self.results)

    @property
    def samples(self) -> int:
        """The most samples that an instance has."""
        return most_samples(self.results)

    @property
    def at_k(self) -> dict[int, PassAtK]:
        """pass@k for every k up to the number of samples."""
        found = {k: pass_at_k(self.results, k) for k in range(1, self.samples + 1)}
        return {k: value for k, value in found.items() if value is not None}

    @property
    def agreement(self) -> Agreement | None:
        """How far samples of one instance agree; None with one sample each."""
        return agreement(self.results)

    @property
    def uncounted(self) -> list[str]:
        """Instances that have an outcome, and none that counts: no part of Pass@1."""
        return [name for name, samples in self.results.items() if not samples]


def numbers_of(run: RunDirectory) -> list[Numbers]:
    """Of every claw that has an outcome in the run or was asked for, by name.

    Raises:
        PlanError: the run's plan can't be read.
    """
    planned = run.plan.cases()
    found: dict[str, Numbers] = {}
    names: dict[str, str] = {}
    ended = set()
    for case in sorted(run.cases(), key=lambda case: (case.claw, case.instance_id, case.sample)):
        metadata = case.metadata()
        if metadata is None:
            continue
        ended.add(PlannedCase(case.claw, case.instance_id, case.sample))
        name = names[case.claw] = str(metadata.get("contender", case.claw))
        claw = found.setdefault(name, Numbers(case.claw, name))
        claw.cases.append(metadata)
        samples, policy = claw.results.setdefault(case.instance_id, []), POLICY[Outcome(metadata["outcome"])]
        if policy.counts:
            samples.append(policy.passes)
    for missing in sorted(set(planned) - ended):
        name = names.get(missing.claw, missing.claw)
        found.setdefault(name, Numbers(missing.claw, name)).missing.append(missing)
    return [found[name] for name in sorted(found)]


def summary_of(run: RunDirectory, numbers: Iterable[Numbers], more: Mapping[str, Any] | None = None) -> Metadata:
    """What `summary.json` says.

    Args:
        run: the run.
        numbers: of all its claws.
        more: what the command that ends knows beside it.
    """
    claws = list(numbers)
    return {
        "schema_version": SCHEMA,
        "run_id": run.run_id,
        "written": now(),
        "with_outcome": sum(len(claw.cases) for claw in claws),
        "without_outcome": sum(len(claw.missing) for claw in claws),
        "interval": {"confidence": CONFIDENCE, "method": METHOD},
        "claws": [_of_a_claw(claw) for claw in claws],
        **(more or {}),
    }


def _of_a_claw(claw: Numbers) -> Metadata:
    rate, agreed = claw.rate, claw.agreement
    return {
        "claw": claw.claw,
        "contender": claw.name,
        "outcomes": claw.outcomes,
        "pass_at_1": asdict(rate) if rate is not None else None,
        "instances_without_a_counted_sample": claw.uncounted,
        "without_outcome": [case._asdict() for case in claw.missing],
        "samples": claw.samples,
        "pass_at_k": {str(k): asdict(value) for k, value in claw.at_k.items()},
        "agreement": asdict(agreed) if agreed is not None else None,
        "tokens": _tokens(claw.cases),
        "cost_usd": _cost(claw.cases),
    }


def _tokens(cases: Iterable[Metadata]) -> Metadata:
    """Sums over all cases: null where one of them is not known, and never 0 for it."""
    sums: dict[str, int | None] = {}
    for case in cases:
        for name, value in (case.get("tokens") or {}).items():
            before = sums.get(name, 0)
            sums[name] = None if before is None or value is None or case.get("unknown_usage") else before + value
    return sums


def _cost(cases: Iterable[Metadata]) -> Metadata | None:
    """US dollars of all cases, by the price table and in the provider's word; None where nothing has a price."""
    # a case that got no reply has nothing to be priced
    costs = [
        cost for case in cases if (cost := case.get("cost")) and (cost["priced"], cost["unpriced"]) != (None, 0)
    ]
    if not costs:
        return None
    is_whole = all(cost["unpriced"] == 0 for cost in costs)
    return {"priced": _dollars(costs, "priced") if is_whole else None, "told": _dollars(costs, "told")}


def _dollars(costs: list[Metadata], name: str) -> float | None:
    known = [Decimal(cost[name]) for cost in costs if cost[name] is not None]
    return float(sum(known)) if len(known) == len(costs) else None


def write_summary(run: RunDirectory, more: Mapping[str, Any] | None = None) -> list[Numbers]:
    """Make a run's `summary.json` anew from its folders.

    Returns:
        what it tells, for who shows it in another way.

    Raises:
        PlanError: the run's plan can't be read.
        OSError: the file can't be written.
    """
    numbers = numbers_of(run)
    write_json(run.path / SUMMARY, summary_of(run, numbers, more))
    return numbers
