"""What each part of the adapter is worth: runs of the same claw and model, each with other parts on.

The worth of a part is its Shapley value: what it adds to the resolved share, averaged over all orders in which the parts
can be added. The worths of all parts sum up to the difference between all parts and none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial
from statistics import fmean
from typing import Literal

from pydantic import BaseModel

from evaluation.collection import AdapterPart
from reports.comparison.contenders import CompareError, Contender
from reports.comparison.manifest_differences import comparability
from reports.comparison.paired import mean_difference

Parts = frozenset[AdapterPart]
Cells = Mapping[Parts, Mapping[str, float]]
"""The resolved share of each instance's samples, by the parts that were on."""

CELLS: tuple[Parts, ...] = tuple(
    frozenset(parts)
    for size in range(len(AdapterPart) + 1)
    for parts in combinations(AdapterPart, size)
    if AdapterPart.CLEANING not in parts or AdapterPart.EXPORT in parts
)
"""What has to be run for a full factorial: without an export there is nothing to clean, so cleaning changes nothing."""


class Cell(BaseModel):
    """The runs with some parts on."""

    parts: tuple[AdapterPart, ...]
    resolved: float


class Worth(BaseModel):
    """What a part is worth, as a difference between resolved shares."""

    part: AdapterPart
    alone: float
    """What it adds to none."""
    last: float
    """What it adds to all others."""
    worth: float
    low: float | None
    high: float | None
    """The 95% interval of `worth`, by bootstrap over instances; None if there is one instance."""


class Factorial(BaseModel):
    """A claw and a model with every combination of parts."""

    format: Literal[1] = 1
    claw: str
    model: str
    instances: list[str]
    """Those that have a verdict in every cell."""
    left_out: list[str]
    cells: list[Cell]
    worths: list[Worth]


def option_value(parts: Parts) -> str:
    """The value of `--adapter-parts`."""
    return ",".join(part for part in AdapterPart if part in parts) or "none"


def factorials(contenders: Sequence[Contender]) -> list[Factorial]:
    """Compute what each part is worth, for each claw and model.

    Args:
        contenders: the claws of runs with `--adapter-parts`.

    Raises:
        CompareError: a run has other settings than the others, two have the same parts, or one is missing.
    """
    groups: dict[tuple[str, str], list[Contender]] = {}
    for one in contenders:
        groups.setdefault((one.claw, one.model), []).append(one)
    return [_factorial(group) for group in groups.values()]


def _factorial(group: Sequence[Contender]) -> Factorial:
    runs: dict[Parts, Contender] = {}
    for one in group:
        parts = _parts_of(one)
        if parts in runs:
            raise CompareError(f"{runs[parts].where} and {one.where} have the same parts: name one of them")
        runs[parts] = one
    first = group[0]
    for one in group[1:]:
        differing = comparability(_facts(first), _facts(one), vary=("collection", "prompt")).confounding
        if differing:
            raise CompareError(
                f"{first.where} and {one.where} differ in more than their parts: {', '.join(differing)}"
            )
    if missing := [cell for cell in CELLS if cell not in runs]:
        raise CompareError(
            f"{first.claw}: {len(missing)} of {len(CELLS)} runs are missing: --adapter-parts="
            + ", --adapter-parts=".join(map(option_value, missing))
        )
    counted = {
        parts: {name: fmean(samples) for name, samples in one.counted.items() if samples}
        for parts, one in runs.items()
    }
    names = sorted({name for one in group for name in one.results})
    shared = [name for name in names if all(name in cell for cell in counted.values())]
    if not shared:
        raise CompareError(f"{first.claw}: no instance has a verdict in all {len(CELLS)} runs")
    cells = {parts: {name: counted[parts][name] for name in shared} for parts in CELLS}
    return Factorial(
        claw=first.claw,
        model=first.model,
        instances=shared,
        left_out=[name for name in names if name not in shared],
        cells=[
            Cell(parts=tuple(p for p in AdapterPart if p in parts), resolved=fmean(cells[parts].values()))
            for parts in CELLS
        ],
        worths=list(worths(cells)),
    )


def _parts_of(one: Contender) -> Parts:
    found = {
        str(facts.get("settings.adapter_parts")): facts.get("settings.adapter_parts")
        for facts in one.facts.values()
    }
    values = list(found.values())
    if len(values) != 1 or values[0] is None:
        raise CompareError(f"{one.where} is not a run with --adapter-parts")
    return frozenset(map(AdapterPart, values[0]))


def _facts(one: Contender) -> dict[str, dict[str, object]]:
    """Without the history in the workspace, which follows from the image and the part `preparation`."""
    return {
        name: {path: value for path, value in facts.items() if not path.startswith("history")}
        for name, facts in one.facts.items()
    }


def worths(cells: Cells) -> Iterator[Worth]:
    """What each part is worth.

    Args:
        cells: all of `CELLS`, with the same instances.
    """
    everything: Parts = frozenset(AdapterPart)

    def gain(part: AdapterPart, others: Parts) -> list[float]:
        """What a part adds to others, by instance."""
        before, after = _cell(cells, others), _cell(cells, others | {part})
        return [after[name] - before[name] for name in before]

    for part in AdapterPart:
        rest = [other for other in AdapterPart if other is not part]
        total = [0.0] * len(cells[frozenset()])
        for size in range(len(rest) + 1):
            weight = factorial(size) * factorial(len(rest) - size) / factorial(len(rest) + 1)
            for others in combinations(rest, size):
                total = [
                    sum_ + weight * one for sum_, one in zip(total, gain(part, frozenset(others)), strict=True)
                ]
        # rounded, because instances that are alike must not differ by the order of additions
        worth = mean_difference([0.0] * len(total), [round(one, 9) for one in total])
        yield Worth(
            part=part,
            alone=fmean(gain(part, frozenset())),
            last=fmean(gain(part, everything - {part})),
            worth=worth.mean,
            low=worth.low,
            high=worth.high,
        )


def _cell(cells: Cells, parts: Parts) -> Mapping[str, float]:
    return cells[parts if AdapterPart.EXPORT in parts else parts - {AdapterPart.CLEANING}]


def tables(found: Factorial) -> list[tuple[str, list[str], list[list[str]]]]:
    """The tables: title, headings, and rows of cells."""
    about = f"{found.claw} with {found.model}, {len(found.instances)} instances"
    marks = [
        [*("on" if part in cell.parts else "-" for part in AdapterPart), f"{100 * cell.resolved:.1f}%"]
        for cell in found.cells
    ]
    rows = [
        [one.part, *(f"{100 * value:+.1f}" for value in (one.alone, one.last, one.worth)), _interval(one)]
        for one in found.worths
    ]
    headings = ["part", "alone", "last", "worth", "95% interval"]
    return [
        (f"Resolved, by the parts that are on: {about}", [*AdapterPart, "resolved"], marks),
        (f"What each part is worth, in points: {about}", headings, rows),
    ]


def _interval(one: Worth) -> str:
    return "-" if one.low is None or one.high is None else f"{100 * one.low:+.1f} to {100 * one.high:+.1f}"
