"""The table at the end of a run: one row a claw, every outcome a column, nothing left out."""

from __future__ import annotations

import io
from collections import Counter
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from evaluation.outcomes import POLICY, Outcome
from records.run import RunDirectory

_PHASES = ("image", "workspace", "agent setup", "agent", "export", "evaluation")


def summary_lines(run: RunDirectory, width: int = 110) -> list[str]:
    """The table of all cases of a run that have an outcome, and where its files are."""
    by_claw: dict[str, list[dict[str, Any]]] = {}
    for case in run.cases():
        metadata = case.metadata()
        if metadata is not None:
            by_claw.setdefault(case.claw, []).append(metadata)
    if not by_claw:
        return ["no case has an outcome"]
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None)
    console.print(_outcomes(by_claw))
    console.print(_efforts(by_claw))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return [*lines, f"artifacts: {run.path}"]


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="")
    table.add_column("claw")
    return table


def _outcomes(by_claw: dict[str, list[dict[str, Any]]]) -> Table:
    table = _table("")
    for heading in ("Pass@1", "cases", *Outcome):
        table.add_column(str(heading).replace("_", " "), justify="right", overflow="fold")
    for claw, rows in by_claw.items():
        outcomes = Counter(Outcome(row["outcome"]) for row in rows)
        judged = sum(count for outcome, count in outcomes.items() if POLICY[outcome].counts)
        passed = sum(count for outcome, count in outcomes.items() if POLICY[outcome].passes)
        share = f"{100 * passed / judged:.1f}%" if judged else "-"
        table.add_row(claw, share, str(len(rows)), *(str(outcomes[outcome]) for outcome in Outcome))
    return table


def _efforts(by_claw: dict[str, list[dict[str, Any]]]) -> Table:
    table = _table("")
    for heading in ("requests", "turns", "input", "cache read", "cache write", "output"):
        table.add_column(heading, justify="right")
    for phase in _PHASES:
        table.add_column(f"{phase} s", justify="right")
    for claw, rows in by_claw.items():
        counts = [_total(rows, key) for key in ("requests", "turns")]
        tokens = [
            _total([row.get("tokens", {}) for row in rows], key)
            for key in ("input", "cache_read", "cache_write", "output")
        ]
        seconds = [
            f"{median(spent):.1f}"
            if (spent := [row["seconds"][phase] for row in rows if phase in row["seconds"]])
            else "-"
            for phase in _PHASES
        ]
        table.add_row(claw, *counts, *tokens, *seconds)
    return table


def _total(rows: list[dict[str, Any]], key: str) -> str:
    """A sum; what is unknown makes it a lower bound, and is never taken for 0."""
    known = [row[key] for row in rows if row.get(key) is not None]
    unknown = any(key in row and row[key] is None for row in rows)
    return f"{'>= ' if unknown else ''}{sum(known):,}"
