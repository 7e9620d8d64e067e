"""The tables at the end of a run: one row a claw, every outcome a column, nothing left out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from statistics import median
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.table import Table

from evaluation.outcomes import Outcome
from records.run import RunDirectory
from reports.numbers import Numbers, numbers_of

WIDTH = 100
"""Columns of text. A report is read in logs as well, where no terminal says how wide it is."""

Cases = list[dict[str, Any]]


def summary_lines(run: RunDirectory, numbers: Sequence[Numbers] | None = None) -> list[str]:
    """The tables of all cases of a run that have an outcome, and where its files are.

    Args:
        run: the run.
        numbers: of all its claws, where they have been read already.

    Raises:
        PlanError: the run's plan can't be read.
    """
    numbers = numbers_of(run) if numbers is None else numbers
    claws = [claw for claw in numbers if claw.cases]
    if not claws:
        return ["no case has an outcome"]
    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None)
    console.print(_table("Pass@1", PASS_RATE, [(claw.name, pass_rate_cells(claw)) for claw in numbers]))
    if any(claw.samples > 1 for claw in claws):
        ks = _shown_ks(max(claw.samples for claw in claws))
        headings = [*(f"pass@{k}" for k in ks), "all\nagree", "pairs\nagree", "instances\nthat differ"]
        console.print(_table("Samples", headings, [(claw.name, _samples(claw, ks)) for claw in claws]))
    for title, headings, row in _TABLES:
        rows = [(claw.name, list(row(claw.cases))) for claw in claws]
        if title == _COST:
            if not any(case.get("cost") for claw in claws for case in claw.cases):
                continue
            if len(claws) > 1:
                rows.append(("all", list(row([case for claw in claws for case in claw.cases]))))
        console.print(_table(title, headings, rows))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return [*lines, *_remarks(numbers), f"artifacts: {run.path}"]


def _table(title: str, headings: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("claw", vertical="bottom", overflow="fold")  # a long name is broken, never a number
    for heading in headings:
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    for name, cells in rows:
        table.add_row(name, *cells)
    return table


def share_with_interval(claw: Numbers) -> str:
    """Pass@1 with its interval, as in "61.1% (95% interval 38.6-79.7%)"; "-" where nothing counts."""
    rate = claw.rate
    return f"{100 * rate.value:.1f}% (95% interval {_span(rate.low, rate.high)})" if rate is not None else "-"


def pass_rate_cells(claw: Numbers) -> list[str]:
    """A claw's row of `PASS_RATE`."""
    rate = claw.rate
    told = (f"{100 * rate.value:.1f}%", _span(rate.low, rate.high)) if rate is not None else ("-", "-")
    counted = rate.counted if rate is not None else 0
    instances = rate.instances if rate is not None else 0
    return [*told, *map(str, (instances, counted, len(claw.cases) - counted, len(claw.missing)))]


def _span(low: float, high: float) -> str:
    return f"{100 * low:.1f}-{100 * high:.1f}%"


def _shown_ks(samples: int) -> list[int]:
    """The ks of pass@k that the table has room for; `summary.json` has all."""
    return [k for k in range(2, samples + 1) if samples <= _MOST_KS or k in (2, 5, 10, samples)]


def _samples(claw: Numbers, ks: Sequence[int]) -> list[str]:
    at_k, agreed = claw.at_k, claw.agreement
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
    """What the tables alone would not tell."""
    for claw in numbers:
        agreed = claw.agreement
        if agreed is not None and agreed.flips:
            yield from _wrapped(f"{claw.name}: samples differ in ", list(agreed.flips))
        if claw.uncounted:
            yield from _wrapped(f"{claw.name}: no part of Pass@1, as no case of theirs counts: ", claw.uncounted)
        most = claw.samples
        fewer = [name for name, samples in claw.results.items() if 0 < len(samples) < most]
        if fewer:
            yield from _wrapped(f"{claw.name}: known by fewer samples than others: ", fewer)
    yield from _broken_environments([case for claw in numbers for case in claw.cases])
    yield from _warnings(numbers)


def _wrapped(head: str, names: Sequence[str]) -> Iterator[str]:
    """A line that names a few of many, and says where all are."""
    more = f" and {len(names) - _MOST_NAMES} more (summary.json)" if len(names) > _MOST_NAMES else ""
    yield from wrap(
        head + ", ".join(names[:_MOST_NAMES]) + more, WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )


def _broken_environments(cases: Cases) -> Iterator[str]:
    """The cases of instances whose gold patch was known not to be resolved on this machine."""
    of = [case for case in cases if case.get("environment_problems")]
    if of:
        names = list(dict.fromkeys(case["instance_id"] for case in of))
        head = (
            f"WARNING: {len(of)} of {len(cases)} cases, counted all the same, are of environments that are broken "
        )
        yield from _wrapped(f"{head}on this machine (clawbench gold): ", names)


def _warnings(numbers: Sequence[Numbers]) -> Iterator[str]:
    """Where claws say that they used something else than the gateway counted."""
    for claw in numbers:
        differing = [case for case in claw.cases if case.get("usage_mismatches")]
        if differing:
            first = differing[0]
            yield (
                f"WARNING: {claw.name} and the gateway count differently in {len(differing)} of {len(claw.cases)} "
                f"cases; in {first['instance_id']}, {first['usage_mismatches'][0]}"
            )


def _outcomes(cases: Cases) -> Iterator[str]:
    outcomes = [Outcome(case["outcome"]) for case in cases]
    yield str(len(cases))
    for outcome in Outcome:
        yield str(outcomes.count(outcome))


def _usage(cases: Cases) -> Iterator[str]:
    unknown = any(case.get("unknown_usage") for case in cases)
    for key in _COUNTS:
        yield _total(cases, key)
    tokens = [case["tokens"] for case in cases if case.get("tokens")]
    for key in _TOKENS:
        yield _total(tokens, key, is_part=unknown)
    yield _cache_hit(tokens)


def _cache_hit(tokens: Cases) -> str:
    """The paper's CacheHit: the part of the prompt that was read from the provider's cache."""
    known = [row for row in tokens if row.get("input") is not None and row.get("cache_read") is not None]
    read = sum(row["cache_read"] for row in known)
    prompt = read + sum(row["input"] for row in known)
    return f"{100 * read / prompt:.1f}%" if prompt else "unknown" if tokens else "-"


def _cost(cases: Cases) -> Iterator[str]:
    # a case that got no reply has nothing to be priced
    costs = [
        cost for case in cases if (cost := case.get("cost")) and (cost["priced"], cost["unpriced"]) != (None, 0)
    ]
    missing = any(cost["unpriced"] != 0 for cost in costs)
    yield _dollars(costs, "priced", is_part=missing)
    yield _dollars(costs, "told", is_part=False)
    known = [Decimal(cost["priced"]) for cost in costs if cost["priced"] is not None]
    yield _amount(sum(known) / len(known)) if known and not missing else "unknown"
    yield _total(costs, "unpriced")
    yield _total(cases, "unknown_usage")
    yield _total(cases, "waited")
    yield _total(cases, "retries")


def _dollars(costs: Cases, key: str, *, is_part: bool) -> str:
    known = [Decimal(cost[key]) for cost in costs if cost[key] is not None]
    if not known:
        return "unknown"
    return f"{'>= ' if is_part or len(known) < len(costs) else ''}{_amount(sum(known))}"


def _amount(dollars: Decimal | float) -> str:
    return f"{dollars:,.2f}" if dollars >= 100 else f"{dollars:.4f}"


def _seconds(cases: Cases) -> Iterator[str]:
    for phase in _PHASES:
        spent = [case["seconds"][phase] for case in cases if phase in case["seconds"]]
        yield f"{median(spent):.1f}" if spent else "-"


def _total(rows: Cases, key: str, *, is_part: bool = False) -> str:
    """A sum; what is unknown makes it a lower bound, and is never taken for 0."""
    there = [row[key] for row in rows if key in row]
    known = [value for value in there if value is not None]
    if not known:
        return "unknown" if there else "-"
    total = sum(known)
    shown = f"{total:,.0f}" if total < _MANY else f"{total / 1e6:,.1f}M"
    return f"{'>= ' if is_part or len(known) < len(there) else ''}{shown}"


_MANY = 100_000_000
"""From here on a number is told in millions."""
_PHASES = ("image", "workspace", "agent setup", "agent", "export", "evaluation")
_COUNTS = ("requests", "turns")
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")
_SHORT = {
    Outcome.UNRESOLVED: "un-\nresolved",
    Outcome.INFRASTRUCTURE: "infra-\nstructure",
}
"""Headings that would be too wide on one line."""
_COST = "Cost (USD)"
_MOST_KS = 5
_MOST_NAMES = 5
PASS_RATE = ["Pass@1", "95% interval", "instances", "cases that\ncount", "cases that\ndo not", "without\noutcome"]
"""The first table's headings after the claw's."""

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
            "a case",
            "unpriced\nreplies",
            "no usage\ntold",
            "s waited",
            "retries",
        ],
        _cost,
    ),
    ("Median seconds by phase", list(_PHASES), _seconds),
)
"""Title, headings after the claw's, and what fills a claw's row."""
