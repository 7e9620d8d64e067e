"""The table at the end of a run: one row a claw, every outcome a column, nothing left out."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from evaluation.outcomes import POLICY, Outcome
from records.run import RunDirectory

WIDTH = 100
"""Columns of text. A report is read in logs as well, where no terminal says how wide it is."""

Cases = list[dict[str, Any]]


def summary_lines(run: RunDirectory) -> list[str]:
    """The table of all cases of a run that have an outcome, and where its files are."""
    by_contender: dict[str, Cases] = {}
    for case in run.cases():
        metadata = case.metadata()
        if metadata is not None:
            by_contender.setdefault(metadata.get("contender", case.claw), []).append(metadata)
    if not by_contender:
        return ["no case has an outcome"]
    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None)
    for title, headings, row in _TABLES:
        if title == _COST and not any(case.get("cost") for cases in by_contender.values() for case in cases):
            continue
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("claw", vertical="bottom", no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
        for claw, cases in by_contender.items():
            table.add_row(claw, *row(cases))
        if title == _COST and len(by_contender) > 1:
            table.add_row("all", *row([case for cases in by_contender.values() for case in cases]))
        console.print(table)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return [*lines, *_warnings(by_contender), f"artifacts: {run.path}"]


def _warnings(by_contender: dict[str, Cases]) -> Iterator[str]:
    """Where claws say that they used something else than the gateway counted."""
    for claw, cases in by_contender.items():
        differing = [case for case in cases if case.get("usage_mismatches")]
        if differing:
            first = differing[0]
            yield (
                f"WARNING: {claw} and the gateway count differently in {len(differing)} of {len(cases)} cases; "
                f"in {first['instance_id']}, {first['usage_mismatches'][0]}"
            )


def _outcomes(cases: Cases) -> Iterator[str]:
    outcomes = Counter(Outcome(case["outcome"]) for case in cases)
    counted = sum(count for outcome, count in outcomes.items() if POLICY[outcome].counts)
    passed = sum(count for outcome, count in outcomes.items() if POLICY[outcome].passes)
    yield f"{100 * passed / counted:.1f}%" if counted else "-"
    yield str(len(cases))
    for outcome in Outcome:
        yield str(outcomes[outcome])


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

_TABLES: tuple[tuple[str, list[str], Callable[[Cases], Iterator[str]]], ...] = (
    (
        "Outcomes",
        ["Pass@1", "cases", *(_SHORT.get(outcome, str(outcome).replace("_", "\n")) for outcome in Outcome)],
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
