"""Selecting a small set of instances on which runs come out as they do on the full set.

The procedure is that of the paper (Claw-SWE-Bench, 2026). Its *columns* are finished runs of claws with models. Each
language group is selected by itself: its instances are sorted by the share of columns that resolved them and cut into
quartiles of difficulty, each quartile gives its quota, and a local search swaps instances within a quartile until the
objective can't be improved. The objective of a group is the sum of

- resolve-rate parity: for each column, how far its rate on the selection is from its rate on the group;
- a hinge for each pair of columns whose rates differ by at least `RANK_EPS`: what the better one's lead on the
  selection lacks of `MARGIN`;
- cost parity: for each column, how far the mean cost on the selection is from that on the group, as a logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.errors import ClawbenchError

RANK_EPS = 0.03
"""Columns whose rates differ by less are not ranked."""
MARGIN = 0.05
RANK_WEIGHT = 1.0
"""The paper's lambda."""
COST_WEIGHT = 1.0
"""The paper's cost_alpha."""
RESTARTS = 200
QUOTA = (0.2, 0.3, 0.3, 0.2)
"""Shares of the quartiles, from the hardest to the easiest: 2, 3, 3 and 2 of 10."""

Array = NDArray[np.float64]


class SelectionError(ClawbenchError):
    """No set can be selected from the given runs."""


@dataclass(frozen=True)
class Calibration:
    """The results that a set is selected from: one row for each column, one entry for each instance."""

    columns: tuple[str, ...]
    instances: tuple[str, ...]
    groups: tuple[str, ...]
    """The language group of each instance."""
    resolved: Array
    """The share of an instance's samples that were resolved."""
    cost: Array
    """US dollars; NaN throughout for a column whose costs are unknown."""


@dataclass(frozen=True)
class Validation:
    """How a column comes out on a selection, beside the full set."""

    column: str
    full: float
    selected: float
    by_group: Mapping[str, float]
    """The difference in each language group."""
    cost_share: float | None
    """The selection's cost as a share of the full set's; None if unknown."""


@dataclass(frozen=True)
class Quality:
    """How well a selection stands for the full set."""

    instances: int
    mean_difference: float
    """Over columns: the selection's rate minus the full set's."""
    mean_error: float
    """The mean of the absolute differences."""
    max_error: float
    ranks_kept: int
    """Pairs of columns in the same order, among those that differ by at least `RANK_EPS` on the full set."""
    ranks: int
    cost_share: float | None
    """The mean over the columns with known costs."""


def select(found: Calibration, per_group: int = 10, *, restarts: int = RESTARTS, seed: int = 1) -> list[str]:
    """Select instances.

    Args:
        found: the results.
        per_group: how many of each language group.
        restarts: how often the search begins anew at random, in each group.
        seed: of the random choices; the same seed gives the same selection.

    Returns:
        the ids, sorted within each language group.

    Raises:
        SelectionError: a group has too few instances.
    """
    chosen: list[str] = []
    for number, group in enumerate(sorted(set(found.groups))):
        members = [at for at, name in enumerate(found.groups) if name == group]
        if len(members) < per_group:
            raise SelectionError(
                f"{group} has {len(members)} instances with results in all runs; {per_group} are needed"
            )
        objective = Objective(found.resolved[:, members], found.cost[:, members])
        quartiles = quartiles_of(found.resolved[:, members], [found.instances[at] for at in members])
        best = _search(objective, quartiles, quotas(per_group), restarts, np.random.default_rng([seed, number]))
        chosen += sorted(found.instances[members[at]] for at in best)
    return chosen


class Objective:
    """The objective of one language group; smaller is better."""

    def __init__(self, resolved: Array, cost: Array) -> None:
        """Take the group's results, one row for each column."""
        self._resolved = resolved
        self._rates = resolved.mean(axis=1)
        known = ~np.isnan(cost).any(axis=1) & (cost.sum(axis=1) > 0)
        self._cost = cost[known]
        self._costs = np.log(self._cost.mean(axis=1))
        pairs = [
            (a, b) if self._rates[a] > self._rates[b] else (b, a)
            for a, b in combinations(range(len(resolved)), 2)
            if abs(self._rates[a] - self._rates[b]) >= RANK_EPS
        ]
        self._better, self._worse = (np.array([pair[side] for pair in pairs], dtype=int) for side in (0, 1))

    def of(self, selections: NDArray[np.intp]) -> Array:
        """The values of several selections of the same size, one in each row."""
        rates = self._resolved[:, selections].mean(axis=2)
        parity = np.abs(rates - self._rates[:, None]).sum(axis=0)
        hinge = np.maximum(0.0, MARGIN - (rates[self._better] - rates[self._worse])).sum(axis=0)
        costs = np.log(np.maximum(self._cost[:, selections].mean(axis=2), 1e-12))
        value: Array = (
            parity + RANK_WEIGHT * hinge + COST_WEIGHT * np.abs(costs - self._costs[:, None]).sum(axis=0)
        )
        return value


def quartiles_of(resolved: Array, names: Sequence[str]) -> list[NDArray[np.intp]]:
    """Four parts of a group's instances, as equal as can be, from the hardest to the easiest.

    Args:
        resolved: the group's results.
        names: the instances' ids, by which equal ones are ordered.
    """
    difficulty = resolved.mean(axis=0)
    order = sorted(range(len(names)), key=lambda at: (difficulty[at], names[at]))
    return [np.array(part, dtype=np.intp) for part in np.array_split(order, len(QUOTA))]


def quotas(per_group: int) -> list[int]:
    """How many instances each quartile gives: the shares of `QUOTA`, rounded by largest remainder."""
    exact = [share * per_group for share in QUOTA]
    whole = [int(one + 1e-9) for one in exact]
    by_remainder = sorted(range(len(exact)), key=lambda at: (whole[at] - exact[at], abs(at - 1.5), at))
    for at in by_remainder[: per_group - sum(whole)]:
        whole[at] += 1
    return whole


def _search(
    objective: Objective,
    quartiles: Sequence[NDArray[np.intp]],
    sizes: Sequence[int],
    restarts: int,
    random: np.random.Generator,
) -> NDArray[np.intp]:
    """The best of several local searches, each from a random selection."""
    best, least = np.array([], dtype=np.intp), np.inf
    for _ in range(restarts):
        parts = [random.choice(part, size, replace=False) for part, size in zip(quartiles, sizes, strict=True)]
        selection = np.concatenate(parts)
        value = objective.of(selection[None, :])[0]
        while True:
            swaps = _swaps(selection, quartiles)
            if not len(swaps):
                break
            values = objective.of(swaps)
            at = int(values.argmin())
            if values[at] >= value - 1e-12:
                break
            selection, value = swaps[at], values[at]
        if value < least - 1e-12:
            best, least = selection, value
    return best


def _swaps(selection: NDArray[np.intp], quartiles: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """All selections that differ by one instance, exchanged within its quartile."""
    found = []
    for part in quartiles:
        outside = np.setdiff1d(part, selection)
        for at in np.flatnonzero(np.isin(selection, part)):
            swapped = np.tile(selection, (len(outside), 1))
            swapped[:, at] = outside
            found.append(swapped)
    return np.concatenate(found) if found else np.empty((0, len(selection)), dtype=np.intp)


def validate(found: Calibration, selection: Sequence[str]) -> Iterator[Validation]:
    """How every column comes out on a selection.

    Args:
        found: the results.
        selection: ids; those without results are ignored.
    """
    chosen = np.isin(found.instances, selection)
    groups = np.array(found.groups)
    for row, column in enumerate(found.columns):
        resolved, cost = found.resolved[row], found.cost[row]
        total = cost.sum()
        yield Validation(
            column=column,
            full=float(resolved.mean()),
            selected=float(resolved[chosen].mean()),
            by_group={
                group: float(resolved[chosen & (groups == group)].mean() - resolved[groups == group].mean())
                for group in sorted(set(found.groups))
                if (chosen & (groups == group)).any()
            },
            cost_share=float(cost[chosen].sum() / total) if total > 0 else None,
        )


def quality(found: Calibration, selection: Sequence[str]) -> Quality:
    """How well a selection with at least one known instance stands for the full set."""
    columns = list(validate(found, selection))
    errors = [abs(one.selected - one.full) for one in columns]
    pairs = [(a, b) for a, b in combinations(columns, 2) if abs(a.full - b.full) >= RANK_EPS]
    shares = [one.cost_share for one in columns if one.cost_share is not None]
    return Quality(
        instances=len(set(selection) & set(found.instances)),
        mean_difference=float(np.mean([one.selected - one.full for one in columns])),
        mean_error=float(np.mean(errors)),
        max_error=max(errors),
        ranks_kept=sum((a.full - b.full) * (a.selected - b.selected) > 0 for a, b in pairs),
        ranks=len(pairs),
        cost_share=float(np.mean(shares)) if shares else None,
    )
