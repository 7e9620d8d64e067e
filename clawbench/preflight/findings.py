"""What a check found, and the table of all findings."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.table import Table

WIDTH = 130
"""Columns of text if no terminal says how many it has."""


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """The run can begin; part of it may fail, take longer, or be less than it could be."""
    FAULT = "fault"
    """The run would fail, or its numbers would be wrong."""


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    check: str
    state: State
    found: str
    to_do: str = ""
    """What to do; empty only if the state is ok."""


def ok(check: str, found: str) -> Finding:
    """Nothing needs to be done."""
    return Finding(check, State.OK, found)


def warning(check: str, found: str, to_do: str) -> Finding:
    """The run can begin anyway."""
    return Finding(check, State.WARNING, found, to_do)


def fault(check: str, found: str, to_do: str) -> Finding:
    """The run can't begin."""
    return Finding(check, State.FAULT, found, to_do)


def faults(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with which the run can't begin."""
    return [finding for finding in findings if finding.state is State.FAULT]


def table_lines(findings: Sequence[Finding], width: int = WIDTH) -> list[str]:
    """The table, as lines of text.

    Args:
        findings: in their order.
        width: columns of text.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("found", overflow="fold", ratio=1)
    table.add_column("what to do", overflow="fold", ratio=1)
    for finding in findings:
        table.add_row(finding.check, str(finding.state), finding.found, finding.to_do)
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None, markup=False, highlight=False, emoji=False).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]
