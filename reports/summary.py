"""The table at the end of a run: one row a claw, every outcome a column, nothing left out."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from evaluation.outcomes import POLICY, Outcome
from records.run import RunDirectory


def summary_lines(run: RunDirectory) -> list[str]:
    """The table of all cases of a run that have an outcome, and where its files are."""
    by_claw: dict[str, list[dict[str, Any]]] = {}
    for case in run.cases():
        metadata = case.metadata()
        if metadata is not None:
            by_claw.setdefault(case.claw, []).append(metadata)
    if not by_claw:
        return ["no case has an outcome"]
    stream = io.StringIO()
    # the width is the text's own: a report is read in logs as well, where no terminal says how wide it is
    console = Console(file=stream, width=200, color_system=None)
    for title, headings, row in _TABLES:
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
        table.add_column("claw")
        for heading in headings:
            table.add_column(heading, justify="right")
        for claw, cases in by_claw.items():
            table.add_row(claw, *row(cases))
        console.print(table)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return [*lines, *(line for item in by_claw.items() for line in _warnings(*item)), f"artifacts: {run.path}"]


def _warnings(claw: str, cases: list[dict[str, Any]]) -> Iterator[str]:
    """That a claw's own count of tokens is not the gateway's, with the first case in which it is not."""
    differing = [case for case in cases if case.get("usage_differs")]
    if differing:
        apart = ", ".join(
            f"{name.replace('_', ' ')} {told:,} for {counted:,}"
            for name, (told, counted) in differing[0]["usage_differs"].items()
        )
        yield (
            f"warning: {claw} tells another number of tokens than the gateway counted in {len(differing)} of "
            f"{len(cases)} cases (more than 2% apart), as in {differing[0]['instance_id']}: {apart}"
        )


def _outcomes(cases: list[dict[str, Any]]) -> Iterator[str]:
    outcomes = Counter(Outcome(case["outcome"]) for case in cases)
    counted = sum(count for outcome, count in outcomes.items() if POLICY[outcome].counts)
    passed = sum(count for outcome, count in outcomes.items() if POLICY[outcome].passes)
    yield f"{100 * passed / counted:.1f}%" if counted else "-"
    yield str(len(cases))
    for outcome in Outcome:
        yield str(outcomes[outcome])


def _usage(cases: list[dict[str, Any]]) -> Iterator[str]:
    for key in _COUNTS:
        yield _total(cases, key)
    for key in _TOKENS:
        yield _total([case.get("tokens", {}) for case in cases], key)


def _seconds(cases: list[dict[str, Any]]) -> Iterator[str]:
    for phase in _PHASES:
        spent = [case["seconds"][phase] for case in cases if phase in case["seconds"]]
        yield f"{median(spent):.1f}" if spent else "-"


def _total(rows: list[dict[str, Any]], key: str) -> str:
    """A sum; what is unknown makes it a lower bound, and is never taken for 0."""
    known = [row[key] for row in rows if row.get(key) is not None]
    unknown = any(key in row and row[key] is None for row in rows)
    return f"{'>= ' if unknown else ''}{sum(known):,}"


_PHASES = ("image", "workspace", "agent setup", "agent", "export", "evaluation")
_COUNTS = ("requests", "turns")
_TOKENS = ("input", "cache_read", "cache_write", "output")

_TABLES: tuple[tuple[str, list[str], Callable[[list[dict[str, Any]]], Iterator[str]]], ...] = (
    ("Outcomes", ["Pass@1", "cases", *(str(outcome).replace("_", " ") for outcome in Outcome)], _outcomes),
    ("Model use", [*_COUNTS, *(f"{name} tokens".replace("_", " ") for name in _TOKENS)], _usage),
    ("Median seconds by phase", list(_PHASES), _seconds),
)
"""Title, headings after the claw's, and what fills a claw's row."""
