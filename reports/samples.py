"""Statistics over samples: Pass@1 with its interval, pass@k, agreement. Only arithmetic.

All functions take *results*: by instance, whether each of its samples that count was resolved, in order. Every
instance has the same weight, however many of its samples count. If an instance lost a
sample to an infrastructure error, its other samples are used; an instance without any sample that counts is left out.
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
    """Pass@1 with its 95% confidence interval."""

    value: float
    low: float
    high: float
    instances: int
    """The number of instances over which it is the mean."""
    counted: int
    """The number of samples that count."""


@dataclass(frozen=True)
class PassAtK:
    """The probability that at least one of k samples resolves an instance, averaged over instances."""

    value: float
    instances: int
    """How many have k samples that count; the others are left out."""


@dataclass(frozen=True)
class Agreement:
    """How far the samples of an instance agree."""

    unanimous: float
    """The share of instances with all samples resolved or none."""
    pairwise: float
    """The share of pairs of samples that agree, averaged over instances."""
    instances: int
    """How many have at least two samples that count."""
    flips: dict[str, list[bool]]
    """The instances whose samples differ, with the result of each sample."""


def pass_at_1(results: Results) -> PassRate | None:
    """The mean over instances of the mean over their samples; None if no sample counts.

    The interval treats the instances as drawn from a larger population, and the samples of an instance as a
    cluster (Miller, "Adding Error Bars to Evals", 2024, arXiv:2411.00640). It is Wilson's (1927): the normal
    interval that Miller gives is far too narrow for fewer than some hundred instances, and has no width if all or
    none are resolved (Bowyer et al., 2025, arXiv:2503.01747). Clusters enter by the effective sample size, which
    is the number of independent results of the same precision; of seven intervals for proportions in clustered
    surveys, Franco et al. (J. Survey Statistics and Methodology, 2019) recommend this form. That size lies between
    the number of instances (all samples of an instance agree) and the number of samples. With one sample each,
    this is the plain Wilson interval.
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
    low, high = wilson(value, max(effective, instances))
    return PassRate(value, low, high, instances, counted)


def wilson(share: float, size: float) -> tuple[float, float]:
    """Wilson's score interval for a share of `size` independent results."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    scale = 1 + z * z / size
    centre = (share + z * z / (2 * size)) / scale
    half = z / scale * sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    # rounding must not exclude the share itself
    return min(max(0.0, centre - half), share), max(min(1.0, centre + half), share)


def pass_at_k(results: Results, k: int) -> PassAtK | None:
    """The unbiased estimate of Chen et al. ("Evaluating Large Language Models Trained on Code", 2021).

    An instance with n samples, c of them resolved, has 1 - C(n - c, k) / C(n, k).

    Args:
        results: as described above.
        k: at least 1.

    Returns:
        the mean over the instances with at least k samples; None if there is none.
    """
    shares = [
        1 - comb(len(samples) - sum(samples), k) / comb(len(samples), k)
        for samples in results.values()
        if len(samples) >= k
    ]
    return PassAtK(fmean(shares), len(shares)) if shares else None


def agreement(results: Results) -> Agreement | None:
    """How far samples agree; None if no instance has two that count."""
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
    """The largest number of samples of an instance; 0 without samples."""
    return max(chain([0], (len(samples) for samples in results.values())))
