"""The tables at the end of a run: one row for each claw, one column for every outcome."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from statistics import median
from textwrap import wrap

from rich.console import Console
from rich.table import Table

from collection.results import tables
from evaluation.outcomes import Outcome
from records.models import CaseRecord, Part, Tokens
from records.run_folder import RunDirectory
from reports.collected import collected_of
from reports.numbers import Numbers, costs_of, numbers_of
from reports.page.page import PAGE

WIDTH = 100
"""Columns of text: reports are also read in logs, where there is no terminal width."""

Cases = Sequence[CaseRecord]


def summary_lines(run: RunDirectory, numbers: Sequence[Numbers] | None = None) -> list[str]:
    """The tables of a run's cases, remarks, and the path of its folder.

    Args:
        run: the run.
        numbers: the numbers of all its claws, if they were read before.

    Raises:
        RunError: the plan or a case's record can't be understood.
    """
    numbers = numbers_of(run) if numbers is None else numbers
    claws = [claw for claw in numbers if claw.cases]
    if not claws:
        return ["no case has an outcome"]
    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None)
    console.print(_table("Pass@1", PASS_RATE, [(claw.agent_label, pass_rate_cells(claw)) for claw in numbers]))
    if any(claw.samples > 1 for claw in claws):
        ks = _shown_ks(max(claw.samples for claw in claws))
        headings = [*(f"pass@{k}" for k in ks), "all\nagree", "pairs\nagree", "instances\nthat differ"]
        console.print(_table("Samples", headings, [(claw.agent_label, _samples(claw, ks)) for claw in claws]))
    for title, headings, row in _TABLES:
        rows = [(claw.agent_label, list(row(claw.cases))) for claw in claws]
        if title == _COST:
            if not any(case.cost is not None for claw in claws for case in claw.cases):
                continue
            if len(claws) > 1:
                rows.append(("all", list(row([case for claw in claws for case in claw.cases]))))
        console.print(_table(title, headings, rows))
    if collected := collected_of(case for claw in claws for case in claw.cases):
        for title, headings, cells in tables(collected):
            console.print(_table(title, headings[1:], [(row[0], row[1:]) for row in cells], "patch"))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return [*lines, *_remarks(numbers), f"page: {run.path / PAGE}", f"artifacts: {run.path}"]


def _table(
    title: str, headings: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], first: str = "claw"
) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, vertical="bottom", overflow="fold")  # long names may be wrapped, numbers must not
    for heading in headings:
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    for name, cells in rows:
        table.add_row(name, *cells)
    return table


def share_with_interval(claw: Numbers) -> str:
    """Pass@1 with its interval, as in "61.1% (95% interval 38.6-79.7%)"; "-" if nothing counts."""
    rate = claw.pass_at_1
    return f"{100 * rate.value:.1f}% (95% interval {_span(rate.low, rate.high)})" if rate is not None else "-"


def pass_rate_cells(claw: Numbers) -> list[str]:
    """A claw's row of `PASS_RATE`."""
    rate = claw.pass_at_1
    told = [f"{100 * rate.value:.1f}%", _span(rate.low, rate.high)] if rate is not None else ["-", "-"]
    counted = rate.counted if rate is not None else 0
    instances = rate.instances if rate is not None else 0
    least = claw.pass_at_1_at_least
    told.append(f"{100 * least:.1f}%" if least is not None else "-")
    return [*told, *map(str, (instances, counted, len(claw.cases) - counted, len(claw.without_outcome)))]


def _span(low: float, high: float) -> str:
    return f"{100 * low:.1f}-{100 * high:.1f}%"


def _shown_ks(samples: int) -> list[int]:
    """The values of k that the table has room for; `summary.json` has all."""
    return [k for k in range(2, samples + 1) if samples <= _MOST_KS or k in (2, 5, 10, samples)]


def _samples(claw: Numbers, ks: Sequence[int]) -> list[str]:
    at_k, agreed = claw.pass_at_k, claw.agreement
    cells = []
    for k in ks:
        found = at_k.get(k)
        part = f" of {found.instances}" if found is not None and found.instances < len(claw.results) else ""
        cells.append(f"{100 * found.value:.1f}%{part}" if found is not None else "-")
    if agreed is None:
        return [*cells, "-", "-", "-"]
    flips = f"{len(agreed.flips)} of {agreed.instances}"
    return [*cells, f"{100 * agreed.unanimous:.1f}%", f"{100 * agreed.pairwise:.1f}%", flips]


def _remarks(numbers: Sequence[Numbers]) -> Iterator[str]:
    """What the tables do not show."""
    for claw in numbers:
        agreed = claw.agreement
        if agreed is not None and agreed.flips:
            yield from _wrapped(f"{claw.agent_label}: samples differ in ", list(agreed.flips))
        if claw.instances_without_a_counted_sample:
            yield from _wrapped(
                f"{claw.agent_label}: not part of Pass@1, because none of their cases counts: ",
                claw.instances_without_a_counted_sample,
            )
        most = claw.samples
        fewer = [name for name, samples in claw.results.items() if 0 < len(samples) < most]
        if fewer:
            yield from _wrapped(f"{claw.agent_label}: fewer samples than the others: ", fewer)
    yield from _broken_environments([case for claw in numbers for case in claw.cases])
    yield from _warnings(numbers)


def _wrapped(head: str, names: Sequence[str]) -> Iterator[str]:
    """A wrapped text that lists a few names, and says where to find the others."""
    more = f" and {len(names) - _MOST_NAMES} more (summary.json)" if len(names) > _MOST_NAMES else ""
    yield from wrap(
        head + ", ".join(names[:_MOST_NAMES]) + more, WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )


def _broken_environments(cases: Cases) -> Iterator[str]:
    """The cases whose environment is known to be broken on this machine."""
    broken = [case for case in cases if case.environment_problems]
    if broken:
        head = (
            f"WARNING: {len(broken)} of {len(cases)} cases have a broken environment on this machine (clawbench gold), "
            "and are counted anyway: "
        )
        yield from _wrapped(head, list(dict.fromkeys(case.instance_id for case in broken)))


def _warnings(numbers: Sequence[Numbers]) -> Iterator[str]:
    """Where the claw's own count of tokens differs from the gateway's."""
    for claw in numbers:
        differing = [case for case in claw.cases if case.usage_mismatches]
        if differing:
            first = differing[0]
            yield (
                f"WARNING: {claw.agent_label} and the gateway count differently in {len(differing)} of {len(claw.cases)} "
                f"cases; in {first.instance_id}, {first.usage_mismatches[0]}"
            )


def _outcomes(cases: Cases) -> Iterator[str]:
    outcomes = [case.outcome for case in cases]
    yield str(len(cases))
    for outcome in Outcome:
        yield str(outcomes.count(outcome))


def _usage(cases: Cases) -> Iterator[str]:
    for name in _COUNTS:
        yield _total(cases, name)
    tokens = [case.tokens for case in cases if case.tokens is not None]
    is_part = any(case.unknown_usage for case in cases)
    for name in _TOKENS:
        yield _total(tokens, name, is_part=is_part)
    yield _cache_hit(tokens)


def _cache_hit(tokens: Sequence[Tokens]) -> str:
    """The paper's CacheHit: the share of the prompt that was read from the provider's cache."""
    known = [(one.cache_read, one.input) for one in tokens if one.cache_read is not None and one.input is not None]
    read, prompt = sum(read for read, _ in known), sum(map(sum, known))
    return f"{100 * read / prompt:.1f}%" if prompt else "unknown" if tokens else "-"


def _cost(cases: Cases) -> Iterator[str]:
    costs = costs_of(cases)
    is_part = any(cost.unpriced != 0 for cost in costs)
    yield _dollars([cost.priced for cost in costs], is_part=is_part)
    yield _dollars([cost.told for cost in costs])
    known = [cost.priced for cost in costs if cost.priced is not None]
    yield _amount(sum(known) / len(known)) if known and not is_part else "unknown"
    yield _total(costs, "unpriced")
    for name in ("unknown_usage", "waited", "retries"):
        yield _total(cases, name)


def _dollars(costs: Sequence[Decimal | None], *, is_part: bool = False) -> str:
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "unknown"
    return f"{'>= ' if is_part or len(known) < len(costs) else ''}{_amount(sum(known))}"


def _amount(dollars: Decimal | float) -> str:
    return f"{dollars:,.2f}" if dollars >= 100 else f"{dollars:.4f}"


def _seconds(cases: Cases) -> Iterator[str]:
    for phase in _PHASES:
        spent = [case.seconds[phase] for case in cases if phase in case.seconds]
        yield f"{median(spent):.1f}" if spent else "-"


def _total(rows: Sequence[Part], name: str, *, is_part: bool = False) -> str:
    """The sum of a field; unknown values make it a lower bound."""
    values = [getattr(row, name) for row in rows]
    known = [value for value in values if value is not None]
    if not known:
        return "unknown" if values else "-"
    total = sum(known)
    shown = f"{total:,.0f}" if total < _MANY else f"{total / 1e6:,.1f}M"
    return f"{'>= ' if is_part or len(known) < len(values) else ''}{shown}"


_MANY = 100_000_000
"""From here on, numbers are shown in millions."""
_PHASES = ("image", "workspace", "agent setup", "agent", "export", "evaluation")
_COUNTS = ("requests", "turns")
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")
_SHORT = {
    Outcome.UNRESOLVED: "un-\nresolved",
    Outcome.INFRASTRUCTURE: "infra-\nstructure",
}
"""Headings that are too wide for one line."""
_COST = "Cost (USD)"
_MOST_KS = 5
_MOST_NAMES = 5
PASS_RATE = [
    "Pass@1",
    "95% interval",
    "at\nleast",
    "instances",
    "cases that\ncount",
    "cases that\ndo not",
    "without\noutcome",
]
"""The headings of the first table, after the claw's. "At least": with every case that is not counted as a failure."""

_TABLES: tuple[tuple[str, list[str], Callable[[Cases], Iterator[str]]], ...] = (
    (
        "Outcomes",
        ["cases", *(_SHORT.get(outcome, str(outcome).replace("_", "\n")) for outcome in Outcome)],
        _outcomes,
    ),
    ("Model use", [*_COUNTS, *(f"{name.replace('_', ' ')}\ntokens" for name in _TOKENS), "CacheHit"], _usage),
    (
        _COST,
        [
            "by the\nprices",
            "by the\nprovider",
            "per case",
            "unpriced\nreplies",
            "no usage\nreported",
            "s waited",
            "retries",
        ],
        _cost,
    ),
    ("Median seconds by phase", list(_PHASES), _seconds),
)
"""The title, the headings after the claw's, and the function that creates a claw's row."""
