"""How much of the spread of Pass@1 is due to the model, and how much to the claw.

A grid has one Pass@1 for each claw with each model. Claws and models are taken as drawn from larger populations, and
the spread is divided into components of variance (two-way analysis of variance with random effects): that of the
models, that of the claws, and the rest, which is what a claw gains from one model more than from another, and chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from reports.comparison.paired import CONFIDENCE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Component:
    """A component of the spread, as a standard deviation of Pass@1."""

    name: str
    deviation: float
    low: float
    high: float | None
    """The 95% interval; None where so few were drawn that nothing bounds it."""
    difference: float
    """Between the means of the best and the worst; for the rest, the largest deviation of a cell."""


@dataclass(frozen=True)
class Spread:
    """The components of a grid."""

    claws: tuple[str, ...]
    models: tuple[str, ...]
    model: Component
    claw: Component
    rest: Component

    @property
    def conclusion(self) -> str:
        """What the components say, in plain words."""
        larger, smaller = sorted((self.model, self.claw), key=lambda one: -one.deviation)
        told = (
            f"Over {len(self.claws)} claws and {len(self.models)} models, Pass@1 varies with the {larger.name} by "
            f"{100 * larger.deviation:.1f} points (standard deviation; 95% interval {span_of(larger)}) and with the "
            f"{smaller.name} by {100 * smaller.deviation:.1f} ({span_of(smaller)}). "
        )
        if smaller.high is not None and larger.low > smaller.high:
            return told + f"The {larger.name} matters more."
        return told + "The intervals overlap: so few claws and models do not show which matters more."


def spread(results: Mapping[tuple[str, str], float]) -> Spread | None:
    """Divide the spread of a grid; None if it has not at least two claws and two models, or if cells are missing.

    Args:
        results: Pass@1 by claw and model.
    """
    claws, models = (tuple(dict.fromkeys(key[side] for key in results)) for side in (0, 1))
    if min(len(claws), len(models)) < 2 or any((claw, model) not in results for claw in claws for model in models):
        return None
    grid = np.array([[results[claw, model] for model in models] for claw in claws])
    by_claw, by_model = grid.mean(axis=1), grid.mean(axis=0)
    rest = grid - by_claw[:, None] - by_model + grid.mean()
    free = (len(claws) - 1) * (len(models) - 1)
    noise = float((rest**2).sum() / free)
    return Spread(
        claws,
        models,
        model=_component("model", by_model, len(claws), noise, free),
        claw=_component("claw", by_claw, len(models), noise, free),
        rest=Component("rest", noise**0.5, *_interval(noise, free), float(np.abs(rest).max())),
    )


def grid_of(rows: Iterable[tuple[str, str, float]]) -> dict[tuple[str, str], float]:
    """A grid from rows of claw, model and Pass@1; of two rows for the same cell, the first counts."""
    found: dict[tuple[str, str], float] = {}
    for claw, model, pass_at_1 in rows:
        found.setdefault((claw, model), pass_at_1)
    return found


def _component(name: str, means: Array, size: int, noise: float, free: int) -> Component:
    """The component of one factor.

    Args:
        name: of the factor.
        means: the mean of each of its levels.
        size: how many cells each is the mean of.
        noise: the mean square of the rest.
        free: the degrees of freedom of the rest.
    """
    square = float(np.var(means, ddof=1)) * size
    variance = max(square - noise, 0.0) / size
    # Satterthwaite's degrees of freedom of the difference of two mean squares
    below = square**2 / (len(means) - 1) + noise**2 / free
    low, high = _interval(variance, max((square - noise) ** 2 / below, 0.01) if below else 1.0)
    if not variance:
        # the estimate is cut off at 0: only what the level means themselves allow bounds it
        high = _interval(square / size, len(means) - 1)[1]
    return Component(name, variance**0.5, low, high, float(np.ptp(means)))


def _interval(variance: float, free: float) -> tuple[float, float | None]:
    """The interval of a standard deviation, given its square and the degrees of freedom."""
    ends = stats.chi2.ppf([(1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2], free)
    low, high = ((variance * free / end) ** 0.5 if end else None for end in map(float, ends))
    return low or 0.0, high


def span_of(one: Component) -> str:
    """The interval of a component, in percentage points."""
    return f"{100 * one.low:.1f} to {f'{100 * one.high:.1f}' if one.high is not None else 'any'}"
