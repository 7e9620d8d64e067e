"""Numbers over samples: Pass@1 with its interval, pass@k, agreement. Arithmetic alone.

All functions take *results*: per instance, whether each of its samples that count was resolved, in order. Every
instance weighs the same, however many of its samples count: one that lost a sample to an infrastructure error is
known by those that it has left, and one that has none left is no part of the number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import comb, sqrt
from statistics import NormalDist, fmean

Results = Mapping[str, Sequence[bool]]

CONFIDENCE = 0.95
METHOD = (
    "Wilson score interval over instances; with several samples of one, of the effective sample size that follows "
    "from the standard error clustered by instance"
)


@dataclass(frozen=True)
class PassRate:
    """Pass@1 and the interval that its true value lies in, with a confidence of 95%."""

    value: float
    low: float
    high: float
    instances: int
    """How many it is the mean over."""
    counted: int
    """Samples that it was made of."""


@dataclass(frozen=True)
class PassAtK:
    """The chance that at least one of k samples resolves an instance, as a mean over instances."""

    value: float
    instances: int
    """How many have k samples that count; the others say nothing of it."""


@dataclass(frozen=True)
class Agreement:
    """How far the samples of one instance say the same."""

    unanimous: float
    """Share of instances whose samples are all resolved, or none of them."""
    pairwise: float
    """Share of pairs of samples that agree, as a mean over instances."""
    instances: int
    """How many have two samples that count, or more."""
    flips: dict[str, list[bool]]
    """Those whose samples differ, with each sample's result."""


def pass_at_1(results: Results) -> PassRate | None:
    """The mean over instances of the mean over each one's samples; None where no sample counts.

    The interval takes instances for drawn from all that could have been asked, and the samples of one for a
    cluster (Miller, "Adding Error Bars to Evals", 2024, arXiv:2411.00640). It is Wilson's (1927): the normal one
    that Miller gives is far too narrow for fewer than some hundred instances, and of no width where all or none
    are resolved (Bowyer et al., 2025, arXiv:2503.01747). For clusters it takes the effective sample size, the
    number of independent results that would be as precise; of seven intervals for proportions in clustered surveys
    Franco et al. (J. Survey Statistics and Methodology, 2019) recommend this form. That size lies between the
    number of instances, where all samples of one say the same, and the number of samples. With one sample each,
    the interval is the plain one.
    """
    means = [fmean(samples) for samples in results.values() if samples]
    if not means:
        return None
    counted, instances = sum(len(samples) for samples in results.values()), len(means)
    value = fmean(means)
    spread = value * (1 - value)
    effective: float = instances
    if instances > 1 and 0 < value < 1:
        variance = sum((mean - value) ** 2 for mean in means) / (instances - 1) / instances
        effective = spread / variance if variance * counted > spread else counted
    low, high = _wilson(value, max(effective, instances))
    return PassRate(value, low, high, instances, counted)


def _wilson(share: float, size: float) -> tuple[float, float]:
    """Wilson's score interval for a share of `size` independent results."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    scale = 1 + z * z / size
    centre = (share + z * z / (2 * size)) / scale
    half = z / scale * sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    # rounding must not put the share itself outside
    return min(max(0.0, centre - half), share), max(min(1.0, centre + half), share)


def pass_at_k(results: Results, k: int) -> PassAtK | None:
    """The unbiased estimate of Chen et al. ("Evaluating Large Language Models Trained on Code", 2021).

    An instance with n samples of which c are resolved has 1 - C(n - c, k) / C(n, k).

    Args:
        results: as in the module's text.
        k: at least 1.

    Returns:
        the mean over the instances that have k samples or more; None where there is none.
    """
    shares = [
        1 - comb(len(samples) - sum(samples), k) / comb(len(samples), k)
        for samples in results.values()
        if len(samples) >= k
    ]
    return PassAtK(fmean(shares), len(shares)) if shares else None


def agreement(results: Results) -> Agreement | None:
    """How far samples agree; None where no instance has two that count."""
    several = {name: list(samples) for name, samples in results.items() if len(samples) > 1}
    if not several:
        return None
    flips = {name: samples for name, samples in several.items() if len(set(samples)) > 1}
    pairs = [
        (comb(sum(samples), 2) + comb(len(samples) - sum(samples), 2)) / comb(len(samples), 2)
        for samples in several.values()
    ]
    return Agreement(1 - len(flips) / len(several), fmean(pairs), len(several), flips)


def most_samples(results: Results) -> int:
    """The largest number of samples that an instance has; 0 where there are none."""
    return max(chain([0], (len(samples) for samples in results.values())))
