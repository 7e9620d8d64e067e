"""What a selection will take before it is run: hours and dollars, each with an interval and what it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from records.case_id import CaseId
from records.files import RunError
from records.run_folder import RunDirectory
from reports.numbers import costs_of
from reports.published import Published, published_rows

_Z = 1.96
"""Of a 95% interval."""
_FACTOR = 2.0
"""By which a number may be off that rests on one case, or on results of other machines and prices."""
_NOT_ITS_OWN = {"image", "waiting"}
"""Steps whose time says nothing about the next case."""


@dataclass(frozen=True)
class Amount:
    """A number with its interval."""

    value: float
    low: float
    high: float

    def __add__(self, other: Amount) -> Amount:
        """The sum; the intervals add up, as both may be off in the same way."""
        return Amount(self.value + other.value, self.low + other.low, self.high + other.high)

    def __truediv__(self, parts: float) -> Amount:
        """A part of it."""
        return Amount(self.value / parts, self.low / parts, self.high / parts)


@dataclass
class Estimate:
    """What some cases will take."""

    cases: int
    seconds: Amount | None = None
    """Of all cases, one after the other; None if nothing is known."""
    dollars: Amount | None = None
    """None if nothing is known, or nothing costs anything."""
    rests_on: list[str] = field(default_factory=list)


@dataclass
class _Known:
    """What earlier cases with the model took, by instance."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    dollars: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    runs: set[str] = field(default_factory=set)
    cases: int = 0


def estimate(cases: Sequence[CaseId], model: str, artifacts: Path, *, label: str, has_price: bool) -> Estimate:
    """Estimate what cases will take, from earlier runs with the model, else from the published results.

    Args:
        cases: the cases.
        model: as in `--model`.
        artifacts: the folder of earlier runs.
        label: how agent labels are made of a claw's name, as in `{claw}-paired`.
        has_price: whether requests can cost anything.
    """
    known = _experience(model, artifacts)
    found = Estimate(len(cases))
    for claw in dict.fromkeys(case.claw for case in cases):
        instances = [case.instance_id for case in cases if case.claw == claw]
        own = known.get(label.format(claw=claw))
        if own is not None:
            found.rests_on.append(
                f"{claw}: {own.cases} earlier cases with this model, in {', '.join(sorted(own.runs))}"
            )
            seconds, dollars = _sum(instances, own.seconds), _sum(instances, own.dollars)
        elif not has_price:
            found.rests_on.append(f"{claw}: nothing is known, as this model has not been used yet")
            continue
        else:
            rows, why = _published(claw, model)
            found.rests_on.append(f"{claw}: {why}")
            seconds = _of_published(len(instances), [row.seconds for row in rows], is_exact=len(rows) == 1)
            each = [row.dollars / row.instances for row in rows if row.dollars is not None]
            dollars = _of_published(len(instances), each, is_exact=len(rows) == 1)
        found.seconds = _plus(found.seconds, seconds)
        found.dollars = _plus(found.dollars, dollars) if has_price else None
    return found


def _plus(first: Amount | None, second: Amount | None) -> Amount | None:
    return first + second if first is not None and second is not None else first or second


def _experience(model: str, artifacts: Path) -> Mapping[str, _Known]:
    """What cases of earlier runs with the model took, by agent label."""
    found: dict[str, _Known] = {}
    for run in _runs_with(model, artifacts):
        for folder in run.cases():
            try:
                record = folder.metadata()
            except (RunError, OSError):
                continue
            if record is None or record.policy.is_error:
                continue
            known = found.setdefault(record.agent_label, _Known())
            known.runs.add(run.run_id)
            known.cases += 1
            took = sum(spent for step, spent in record.seconds.items() if step not in _NOT_ITS_OWN)
            known.seconds[record.instance_id].append(took)
            costs = costs_of([record])
            if costs and costs[0].priced is not None and not costs[0].unpriced:
                known.dollars[record.instance_id].append(float(costs[0].priced))
    return found


def _runs_with(model: str, artifacts: Path) -> Iterator[RunDirectory]:
    for path in sorted(artifacts.glob("*/manifest.json")):
        run = RunDirectory(path.parent)
        try:
            settings = run.manifest().settings
        except (RunError, OSError):
            continue  # `clawbench runs` says what is wrong with it
        if settings.model == model and not settings.made_elsewhere:
            yield run


def _sum(instances: Sequence[str], known: Mapping[str, Sequence[float]]) -> Amount | None:
    """The sum over instances: each one's own mean if it is known, else the mean over all others."""
    means = {name: fmean(values) for name, values in known.items() if values}
    if not means:
        return None
    usual = fmean(means.values())
    value = sum(means.get(name, usual) for name in instances)
    if len(means) < 2:
        return Amount(value, value / _FACTOR, value * _FACTOR)
    spread, unknown = stdev(means.values()), sum(name not in means for name in instances)
    # cases vary around their mean, and the mean of the unknown ones is itself uncertain
    error = _Z * spread * sqrt(len(instances) + unknown**2 / len(means))
    return Amount(value, max(value - error, 0.0), value + error)


def _published(claw: str, model: str) -> tuple[list[Published], str]:
    """The published rows that come closest, and which they are."""
    rows = list(published_rows())
    steps: list[tuple[Iterable[Published], str]] = [
        ((row for row in rows if row.claw == claw and row.is_of(model)), "this claw and model"),
        ((row for row in rows if row.is_of(model)), "this model with other claws"),
        ((row for row in rows if row.claw == claw), "this claw with other models"),
        (rows, "other claws and models"),
    ]
    for candidates, which in steps:
        if found := list(candidates):
            newest = [row for row in found if row.version == found[0].version]
            return newest, f"no earlier run; published results of Claw-SWE-Bench for {which}"
    return [], "nothing is known"


def _of_published(count: int, each: Sequence[float | None], *, is_exact: bool) -> Amount | None:
    known = [value for value in each if value is not None]
    if not known:
        return None
    value = count * fmean(known)
    if is_exact:
        return Amount(value, value / _FACTOR, value * _FACTOR)
    return Amount(value, count * min(known), count * max(known))


def lines(found: Estimate, agents: int) -> list[str]:
    """The estimate in words.

    Args:
        found: the estimate.
        agents: how many claws work at the same time.
    """
    hours = "unknown time"
    if found.seconds is not None:
        unit, name = (3600, "hours") if found.seconds.value >= 3600 * agents else (60, "minutes")
        took = found.seconds / (unit * agents)
        hours = f"about {took.value:.1f} {name} (95% interval {took.low:.1f}-{took.high:.1f})"
    dollars = "no cost"
    if found.dollars is not None:
        cost = found.dollars
        dollars = f"about ${cost.value:,.2f} ({cost.low:,.2f}-{cost.high:,.2f})"
    head = f"estimate for {found.cases} cases, {agents} at a time: {hours}, {dollars}"
    return [head, *(f"  {reason}" for reason in found.rests_on)]
