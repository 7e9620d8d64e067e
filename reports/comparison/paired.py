"""Statistics of two contenders on the same instances. Only arithmetic.

A *difference* is that of the second contender from the first (the baseline), one for each instance. Samples of an
instance are averaged first, because they are a cluster: instances, not samples, are the independent observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd, lcm
from statistics import NormalDist, fmean

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANT = 0.05
"""A p-value below this counts as a difference."""
POWER = 0.8
"""The probability with which a planned comparison is to find a difference that exists."""
_FINEST = 10_000
"""Steps of a difference in the exact test; finer ones, which odd numbers of samples give, are rounded."""
_RESAMPLES = 9_999
_SEED = 20260101
"""Fixed, so that the same runs always give the same intervals."""

Samples = Sequence[bool | None]
"""An instance's samples: whether each was resolved, with None for one without a verdict."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95% confidence interval."""

    mean: float
    low: float | None
    """None if a single value gives no interval."""
    high: float | None


@dataclass(frozen=True)
class Paired:
    """How two contenders differ on the instances for which both have a verdict."""

    won: tuple[str, ...]
    """The instances that the second resolved more often than the first."""
    lost: tuple[str, ...]
    """The instances that the second resolved less often."""
    both: tuple[str, ...]
    """The instances that both resolved equally often, and at least once."""
    neither: tuple[str, ...]
    """The instances that neither ever resolved."""
    first: float
    """The first contender's Pass@1 on these instances."""
    second: float
    difference: Interval
    """Of Pass@1: the second's minus the first's."""
    p_value: float
    """Of the exact test; see `exact_test`."""
    needed_instances: int | None
    """How many such instances would show a difference of this size; None if there is no difference."""
    needed_samples: int | None
    """How many samples of each of these instances would show it; None if unknown, or if more samples
    would not help."""
    detectable: float | None
    """The smallest difference that this many instances would show; None if it can't be estimated."""

    @property
    def instances(self) -> int:
        """The number of instances."""
        return len(self.won) + len(self.lost) + len(self.both) + len(self.neither)


@dataclass(frozen=True)
class Bounds:
    """The difference of Pass@1 over all instances, whatever the cases without a verdict would have given."""

    low: float
    high: float
    open: int
    """Cases without a verdict."""
    instances: int


def pair(first: Mapping[str, Samples], second: Mapping[str, Samples]) -> Paired | None:
    """Compare two contenders on the instances for which both have a verdict; None if there is none.

    Args:
        first: the baseline's samples by instance.
        second: the other's.
    """
    known = {name: (_known(first[name]), _known(second[name])) for name in sorted(first.keys() & second.keys())}
    known = {name: (a, b) for name, (a, b) in known.items() if a and b}
    if not known:
        return None
    rates = {name: (Fraction(sum(a), len(a)), Fraction(sum(b), len(b))) for name, (a, b) in known.items()}
    exact = [b - a for a, b in rates.values()]
    differences = [float(one) for one in exact]
    steps = min(lcm(*(one.denominator for one in exact)), _FINEST)
    mean, variance = fmean(differences), _variance(differences)
    enough = (_z((1 + CONFIDENCE) / 2) + _z(POWER)) ** 2
    return Paired(
        won=tuple(name for name, (a, b) in rates.items() if b > a),
        lost=tuple(name for name, (a, b) in rates.items() if b < a),
        both=tuple(name for name, (a, b) in rates.items() if a == b > 0),
        neither=tuple(name for name, (a, b) in rates.items() if a == b == 0),
        first=float(fmean(a for a, _ in rates.values())),
        second=float(fmean(b for _, b in rates.values())),
        difference=Interval(mean, *_interval_of_shares(differences)),
        p_value=exact_test([round(one * steps) for one in exact]),
        needed_instances=max(ceil(enough * variance / mean**2), 1) if mean and variance else None,
        needed_samples=_needed_samples(list(known.values()), mean, variance, enough),
        detectable=min((enough * variance / len(known)) ** 0.5, 1.0) if variance else None,
    )


def exact_test(differences: Sequence[int]) -> float:
    """The two-sided p-value of "neither is better": each difference could as well have had the other sign.

    With one sample of each instance, this is the exact McNemar test (the binomial test of instances won against
    instances lost). With several, it is the same test with the differences of the means as weights (Fisher's
    randomization test for pairs).

    Args:
        differences: whole numbers; only their ratios matter.
    """
    sizes = [abs(one) for one in differences if one]
    unit = gcd(*sizes) if sizes else 1
    sizes = [size // unit for size in sizes]
    total = sum(sizes)
    chances = np.zeros(2 * total + 1)  # of each possible sum, from -total to total
    chances[total] = 1.0
    for size in sizes:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    observed = abs(sum(differences)) // unit
    sums = np.abs(np.arange(-total, total + 1))
    return float(min(chances[sums >= observed].sum(), 1.0))


def bounds(first: Mapping[str, Samples], second: Mapping[str, Samples]) -> Bounds:
    """How far cases without a verdict could move the difference, over all instances that both contenders have.

    Args:
        first: the baseline's samples by instance; at least one instance is also in `second`.
        second: the other's.
    """
    names = sorted(first.keys() & second.keys())

    def rate(samples: Mapping[str, Samples], open_counts_as: bool) -> float:
        return fmean(fmean(open_counts_as if one is None else one for one in samples[name]) for name in names)

    return Bounds(
        low=rate(second, False) - rate(first, True),
        high=rate(second, True) - rate(first, False),
        open=sum(list(samples[name]).count(None) for samples in (first, second) for name in names),
        instances=len(names),
    )


def mean_difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The mean difference of a quantity, such as cost, with a bootstrap interval over instances.

    Args:
        first: the baseline's value for each instance, at least one.
        second: the other's, in the same order.
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    return Interval(fmean(differences), *_interval_of_quantity(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for the number of comparisons (Holm, 1979), in the given order."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[position]))
        corrected[position] = largest
    return corrected


def _known(samples: Samples) -> list[bool]:
    return [one for one in samples if one is not None]


def _z(share: float) -> float:
    return NormalDist().inv_cdf(share)


def _variance(values: Sequence[float]) -> float:
    """The unbiased variance; 0 for a single value."""
    return float(np.var(values, ddof=1)) if len(values) > 1 else 0.0


def _interval_of_shares(differences: Sequence[float]) -> tuple[float, float]:
    """The interval of a mean difference of shares: the bootstrap's, unless all differences are equal.

    The bootstrap then gives an interval without width, as if nothing else could happen. In this case the interval
    is that of Bonett and Price (2012), which adds one instance to each of won and lost.
    """
    found = _bootstrap(differences)
    if found is not None:
        return found
    size, mean = len(differences) + 2, fmean(differences)
    won = (len(differences) * max(mean, 0) + 1) / size
    lost = (len(differences) * max(-mean, 0) + 1) / size
    half = _z((1 + CONFIDENCE) / 2) * ((won + lost - (won - lost) ** 2) / size) ** 0.5
    return max(min(won - lost - half, mean), -1.0), min(max(won - lost + half, mean), 1.0)


def _interval_of_quantity(differences: Sequence[float]) -> tuple[float | None, float | None]:
    found = _bootstrap(differences)
    if found is not None:
        return found
    return (differences[0], differences[0]) if len(differences) > 1 else (None, None)


def _bootstrap(values: Sequence[float]) -> tuple[float, float] | None:
    """The bias-corrected and accelerated bootstrap interval of a mean; None if all values are equal."""
    if len(set(values)) < 2:
        return None
    found = stats.bootstrap(
        (np.asarray(values),), np.mean, confidence_level=CONFIDENCE, n_resamples=_RESAMPLES, rng=_SEED
    ).confidence_interval
    return float(found.low), float(found.high)


def _needed_samples(
    known: Sequence[tuple[Sequence[bool], Sequence[bool]]], mean: float, variance: float, enough: float
) -> int | None:
    """How many samples of each instance would show this difference; see `Paired.needed_samples`.

    The variance of a difference has two parts. Only the one that comes from the chance within an instance gets
    smaller with more samples, and it can be told apart only if each instance has at least two.
    """
    if not mean or any(len(samples) < 2 for both in known for samples in both):
        return None
    within_one = fmean(sum(_variance([float(one) for one in samples]) for samples in both) for both in known)
    within = fmean(
        sum(_variance([float(one) for one in samples]) / len(samples) for samples in both) for both in known
    )
    between = max(variance - within, 0.0)
    room = mean**2 * len(known) / enough - between
    return max(ceil(within_one / room), 1) if room > 0 and within_one else None
