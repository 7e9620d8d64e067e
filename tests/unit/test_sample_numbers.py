"""Numbers over samples: Pass@1 with its interval, pass@k, agreement."""

from __future__ import annotations

from itertools import combinations
from math import comb, isclose
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.samples import agreement, most_samples, pass_at_1, pass_at_k

SAMPLES = st.lists(st.booleans(), max_size=6)
RESULTS = st.dictionaries(st.text(max_size=3), SAMPLES, max_size=12)
NOT_EMPTY = RESULTS.filter(lambda results: any(results.values()))


@given(NOT_EMPTY)
def test_pass_at_1_weighs_every_instance_the_same(results: dict[str, list[bool]]) -> None:
    rate = pass_at_1(results)
    assert rate is not None
    assert isclose(rate.value, fmean(fmean(samples) for samples in results.values() if samples))
    assert rate.instances == sum(1 for samples in results.values() if samples)
    assert rate.counted == sum(map(len, results.values()))
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert rate.high - rate.low > 0


@given(NOT_EMPTY)
def test_failures_for_successes_mirror_the_interval(results: dict[str, list[bool]]) -> None:
    rate, other = pass_at_1(results), pass_at_1({name: [not one for one in row] for name, row in results.items()})
    assert rate is not None
    assert other is not None
    assert isclose(rate.low, 1 - other.high, abs_tol=1e-9)
    assert isclose(rate.high, 1 - other.low, abs_tol=1e-9)


@given(NOT_EMPTY, st.integers(2, 5))
def test_samples_that_repeat_one_another_tell_nothing_new(results: dict[str, list[bool]], times: int) -> None:
    """A claw that always does the same is known no better for having been asked more often."""
    once = {name: row[:1] for name, row in results.items()}
    again = {name: row * times for name, row in once.items()}
    one, many = pass_at_1(once), pass_at_1(again)
    assert one is not None
    assert many is not None
    assert isclose(one.low, many.low, abs_tol=1e-9)
    assert isclose(one.high, many.high, abs_tol=1e-9)


@given(NOT_EMPTY)
def test_the_interval_is_between_that_of_instances_and_that_of_samples(results: dict[str, list[bool]]) -> None:
    """Clusters are worth their number at the least, and as many independent samples at the most."""
    rate = pass_at_1(results)
    assert rate is not None
    widest = _wilson_by_its_definition(rate.value, rate.instances)
    narrowest = _wilson_by_its_definition(rate.value, rate.counted)
    assert widest[0] - 1e-6 <= rate.low <= narrowest[0] + 1e-6
    assert narrowest[1] - 1e-6 <= rate.high <= widest[1] + 1e-6


def _wilson_by_its_definition(share: float, size: int) -> tuple[float, float]:
    """The shares that a test of the normal score would not reject: by bisection, not by the closed form."""

    def rejected(true: float) -> bool:
        return abs(share - true) > 1.959963984540054 * (true * (1 - true) / size) ** 0.5

    ends = []
    for end in (0.0, 1.0):
        outside, inside = end, share
        for _ in range(60):
            middle = (outside + inside) / 2
            outside, inside = (middle, inside) if rejected(middle) else (outside, middle)
        ends.append(inside)
    return ends[0], ends[1]


@pytest.mark.parametrize(
    ("resolved", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 10, 0.0179, 0.4042), (15, 50, 0.1910, 0.4375)],
)
def test_known_intervals_of_one_sample_each(resolved: int, of: int, low: float, high: float) -> None:
    """Against the values that statistics packages give for Wilson's interval."""
    rate = pass_at_1({str(number): [number < resolved] for number in range(of)})
    assert rate is not None
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)


@pytest.mark.parametrize(("instances", "samples"), [(10, 1), (10, 3), (50, 1), (50, 3)])
def test_the_interval_holds_the_truth_as_often_as_it_says(instances: int, samples: int) -> None:
    """Instances of every difficulty, drawn anew each time; the seed is fixed."""
    random, draws, held = Random(7), 1000, 0  # noqa: S311
    for _ in range(draws):
        chances = {str(number): random.betavariate(0.5, 1.0) for number in range(instances)}
        rate = pass_at_1(
            {name: [random.random() < chance for _ in range(samples)] for name, chance in chances.items()}
        )
        assert rate is not None
        held += rate.low <= 1 / 3 <= rate.high
    assert 0.92 <= held / draws <= 0.98


@given(NOT_EMPTY, st.integers(1, 6))
def test_pass_at_k_is_the_share_of_choices_of_k_samples_that_hold_a_resolved_one(
    results: dict[str, list[bool]], k: int
) -> None:
    counted = [row for row in results.values() if len(row) >= k]
    found = pass_at_k(results, k)
    if not counted:
        assert found is None
        return
    assert found is not None
    assert found.instances == len(counted)
    assert isclose(found.value, fmean(fmean(map(any, combinations(row, k))) for row in counted), abs_tol=1e-9)


@given(st.dictionaries(st.text(max_size=3), st.lists(st.booleans(), min_size=4, max_size=4), min_size=1))
def test_pass_at_k_grows_from_pass_at_1_to_any(results: dict[str, list[bool]]) -> None:
    values = [found.value for k in range(1, 5) if (found := pass_at_k(results, k))]
    rate = pass_at_1(results)
    assert rate is not None
    assert isclose(values[0], rate.value)
    assert values == sorted(values)
    assert isclose(values[-1], fmean(map(any, results.values())))
    assert pass_at_k(results, 5) is None


@given(RESULTS)
def test_agreement_is_of_pairs_of_samples(results: dict[str, list[bool]]) -> None:
    several = {name: row for name, row in results.items() if len(row) > 1}
    found = agreement(results)
    if not several:
        assert found is None
        return
    assert found is not None
    assert found.instances == len(several)
    assert found.flips == {name: row for name, row in several.items() if any(row) and not all(row)}
    assert isclose(found.unanimous, 1 - len(found.flips) / len(several))
    pairs = [[one == other for one, other in combinations(row, 2)] for row in several.values()]
    assert isclose(found.pairwise, fmean(fmean(row) for row in pairs))
    assert all(len(row) == comb(len(samples), 2) for row, samples in zip(pairs, several.values(), strict=True))


def test_nothing_counted_has_no_number() -> None:
    for results in ({}, {"a": []}):
        assert pass_at_1(results) is None
        assert pass_at_k(results, 1) is None
        assert agreement(results) is None
        assert most_samples(results) == 0
