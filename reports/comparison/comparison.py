"""Every pair of contenders: whether they may be compared, how they differ, and what can be concluded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from reports.comparison.contenders import QUANTITIES, CompareError, Contender
from reports.comparison.grid import Spread, grid_of, spread
from reports.comparison.manifest_differences import UNKNOWN, Comparability, comparability
from reports.comparison.paired import (
    SIGNIFICANT,
    Bounds,
    Interval,
    Paired,
    Samples,
    bounds,
    holm,
    mean_difference,
    pair,
)
from reports.published import Distance, distances


@dataclass(frozen=True)
class Quantity:
    """How two contenders differ in what a case takes, averaged over instances."""

    name: str
    first: float
    second: float
    difference: Interval
    instances: int
    unknown: int
    """Instances that are left out because the value of one side is unknown."""


@dataclass(frozen=True)
class Group:
    """A part of the instances. Its p-value is not corrected for the number of parts."""

    kind: str
    """`language group` or `repository`."""
    name: str
    paired: Paired


@dataclass(frozen=True)
class Pair:
    """Two contenders on the instances that both have; the first is the baseline."""

    first: str
    second: str
    comparability: Comparability
    is_shown: bool
    """Whether the differences are given: nothing confounds them, or the user allowed it."""
    only_first: tuple[str, ...]
    """Instances that only the first has; they are not compared."""
    only_second: tuple[str, ...]
    paired: Paired | None = None
    """None if not shown, or if there is no instance for which both have a verdict."""
    p_corrected: float | None = None
    """The p-value, corrected for the number of pairs that are shown (Holm)."""
    bounds: Bounds | None = None
    quantities: tuple[Quantity, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def is_confounded(self) -> bool:
        """Whether another factor than the one under study may explain a difference."""
        return bool(self.comparability.confounding)

    @property
    def is_worse(self) -> bool:
        """Whether the second is shown to resolve less than the first."""
        return self._is_shown_different and self.paired is not None and self.paired.difference.mean < 0

    @property
    def _is_shown_different(self) -> bool:
        return self.p_corrected is not None and self.p_corrected < SIGNIFICANT

    @property
    def conclusion(self) -> str:
        """What can and cannot be concluded, in plain words."""
        if not self.is_shown:
            return _not_comparable(self.first, self.second, self.comparability.confounding)
        if self.paired is None:
            return f"No instance has a verdict for both {self.first} and {self.second}."
        parts = [*self._finding(self.paired), *self._open_cases()]
        if self.is_confounded:
            parts.append(f"CONFOUNDED: they {_confounders(self.comparability.confounding)}.")
        return " ".join(parts)

    def _finding(self, paired: Paired) -> Iterator[str]:
        size = f"{points(paired.difference.mean)} points, 95% interval {span(paired.difference)}"
        told = f"{size}, p = {p_value(self.p_corrected)}"
        if self._is_shown_different:
            word = "more" if paired.difference.mean > 0 else "less"
            yield f"{self.second} resolves {word} than {self.first} on instances like these {paired.instances}: {told}."
            return
        yield (
            f"These {paired.instances} instances do not show whether {self.second} resolves more or less than "
            f"{self.first}: {told}."
        )
        if paired.needed_instances is not None and paired.needed_instances > paired.instances:
            samples = f", or {paired.needed_samples:,} samples of each of these" if paired.needed_samples else ""
            yield f"It would take about {paired.needed_instances:,} instances{samples} to show a difference of this size."
        if paired.detectable is not None:
            yield f"These can show one of about {100 * paired.detectable:.0f} points."

    def _open_cases(self) -> Iterator[str]:
        if self.bounds is None or not self.bounds.open:
            return
        found = self.bounds
        cases = "1 case has" if found.open == 1 else f"{found.open} cases have"
        reversing = " They could turn the result around." if found.low < 0 < found.high else ""
        yield (
            f"{cases} no verdict: depending on them, the difference over all {found.instances} instances lies between "
            f"{points(found.low)} and {points(found.high)} points.{reversing}"
        )


@dataclass(frozen=True)
class Row:
    """A contender by itself."""

    name: str
    where: str
    claw: str
    is_made_elsewhere: bool
    pass_at_1: float | None
    """Over the instances with a verdict; None without any."""
    instances: int
    cases: int
    without_verdict: int
    published: tuple[Distance, ...]
    """The distance to the paper's results of the same claw and model."""


@dataclass(frozen=True)
class Comparison:
    """A whole comparison."""

    contenders: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    spread: Spread | None
    """None if the contenders are no grid of claws and models, or if something else differs between them."""


def compare(found: Sequence[Contender], *, vary: Iterable[str] = (), allow_confounded: bool = False) -> Comparison:
    """Compare every contender with every later one.

    Args:
        found: at least two.
        vary: the factors under study; see `comparability`.
        allow_confounded: whether differences are given although other factors differ.

    Raises:
        CompareError: there are fewer than two.
    """
    if len(found) < 2:
        raise CompareError(
            f"{found[0].name if found else 'nothing'} alone can't be compared: name a second run or claw"
        )
    asked = tuple(vary)
    pairs = [_pair(first, second, asked, allow_confounded) for first, second in combinations(found, 2)]
    shown = [number for number, one in enumerate(pairs) if one.paired is not None]
    corrected = holm([one.paired.p_value for one in pairs if one.paired is not None])
    for number, p_corrected in zip(shown, corrected, strict=True):
        pairs[number] = replace(pairs[number], p_corrected=p_corrected)
    return Comparison(tuple(_row(one) for one in found), tuple(pairs), _spread(found))


def unlike_the_first(found: Sequence[Contender], vary: Iterable[str]) -> list[str]:
    """What confounds each later contender with the first, in plain words; nothing where only these factors differ.

    It needs no statistics, so that it is quick for many contenders.

    Args:
        found: at least one.
        vary: the factors under study; see `comparability`.
    """
    first, *others = found
    asked = tuple(vary)
    factors = [(one, comparability(first.facts, one.facts, asked).confounding) for one in others]
    return [_not_comparable(first.name, one.name, confounding) for one, confounding in factors if confounding]


@dataclass(frozen=True)
class Departure:
    """A case that did not end alike in two runs."""

    case: str
    first: str
    second: str


def departures(first: Sequence[Contender], second: Sequence[Contender]) -> list[Departure]:
    """The cases whose outcomes differ between two runs that should be the same.

    Args:
        first: all contenders of one run.
        second: all contenders of the other.
    """
    known = [{case: outcome for one in side for case, outcome in one.outcomes.items()} for side in (first, second)]
    missing = "not in the run"
    told = [{case: outcome or "no outcome" for case, outcome in side.items()} for side in known]
    return [
        Departure(str(case), str(told[0].get(case, missing)), str(told[1].get(case, missing)))
        for case in sorted(told[0].keys() | told[1].keys())
        if told[0].get(case) != told[1].get(case)
    ]


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * share:+.1f}"


def span(interval: Interval) -> str:
    """The interval of a difference of shares, in percentage points."""
    return (
        "unknown"
        if interval.low is None or interval.high is None
        else f"{points(interval.low)} to {points(interval.high)}"
    )


def p_value(value: float | None) -> str:
    """A p-value with as many digits as mean something."""
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _not_comparable(first: str, second: str, confounding: Sequence[str]) -> str:
    return f"Not comparable: {first} and {second} {_confounders(confounding)}."


def _confounders(factors: Sequence[str]) -> str:
    named = [factor for factor in factors if factor != UNKNOWN]
    parts = []
    if UNKNOWN in factors:
        parts.append(
            "cannot be shown to have been run alike, because nothing says how the patches of one were made"
        )
    if named:
        parts.append(f"also differ in {', '.join(named)}")
    return " and ".join(parts)


def _pair(first: Contender, second: Contender, vary: Sequence[str], allow_confounded: bool) -> Pair:
    a, b = first.results, second.results
    found = comparability(first.facts, second.facts, vary)
    made = Pair(
        first=first.name,
        second=second.name,
        comparability=found,
        is_shown=not found.confounding or allow_confounded,
        only_first=tuple(sorted(a.keys() - b.keys())),
        only_second=tuple(sorted(b.keys() - a.keys())),
    )
    if not made.is_shown or not a.keys() & b.keys():
        return made
    return replace(
        made,
        paired=pair(a, b),
        bounds=bounds(a, b),
        quantities=tuple(_quantities(first, second)),
        groups=tuple(_groups(first, second, a, b)),
    )


def _quantities(first: Contender, second: Contender) -> Iterator[Quantity]:
    shared = sorted(first.results.keys() & second.results.keys())
    for name in QUANTITIES:
        values = [(first.mean_of(name, one), second.mean_of(name, one)) for one in shared]
        known = [(a, b) for a, b in values if a is not None and b is not None]
        if known:
            before, after = [a for a, _ in known], [b for _, b in known]
            difference = mean_difference(before, after)
            yield Quantity(name, fmean(before), fmean(after), difference, len(known), len(shared) - len(known))


def _groups(
    first: Contender, second: Contender, a: Mapping[str, Samples], b: Mapping[str, Samples]
) -> Iterator[Group]:
    by_language: dict[str, list[str]] = defaultdict(list)
    by_repository: dict[str, list[str]] = defaultdict(list)
    for name in sorted(a.keys() & b.keys()):
        by_language[first.languages.get(name) or second.languages.get(name) or "unknown"].append(name)
        by_repository[first.repositories.get(name) or second.repositories.get(name, "unknown")].append(name)
    for kind, members in (("language group", by_language), ("repository", by_repository)):
        for group, names in sorted(members.items()) if len(members) > 1 else ():
            paired = pair({name: a[name] for name in names}, {name: b[name] for name in names})
            if paired is not None:
                yield Group(kind, group, paired)


def _spread(found: Sequence[Contender]) -> Spread | None:
    """The spread over claws and models, on the instances for which all contenders have a verdict."""
    common = set.intersection(*({name for name, samples in one.counted.items() if samples} for one in found))
    pairs = combinations(found, 2)
    if not common or any(comparability(a.facts, b.facts, ("claw", "model")).confounding for a, b in pairs):
        return None
    return spread(
        grid_of((one.claw, one.model, fmean(fmean(one.counted[name]) for name in sorted(common))) for one in found)
    )


def _row(one: Contender) -> Row:
    means = [fmean(known) for known in one.counted.values() if known]
    cases = [case for samples in one.results.values() for case in samples]
    return Row(
        name=one.name,
        where=one.where,
        claw=one.claw,
        is_made_elsewhere=one.is_made_elsewhere,
        pass_at_1=fmean(means) if means else None,
        instances=len(one.results),
        published=tuple(distances(one.claw, one.model, one.counted)),
        cases=len(cases),
        without_verdict=cases.count(None),
    )
