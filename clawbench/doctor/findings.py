"""What a check found, and the table of all findings."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.table import Table

WIDTH = 130
"""Columns of text where no terminal says how many it has."""


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """The run can begin; some of it may fail, take longer, or be less than it could be."""
    FAULT = "fault"
    """The run would fail, or its numbers would not be what they are said to be."""


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    check: str
    state: State
    found: str
    to_do: str = ""
    """What to do; of a finding that is not ok it says something."""


def ok(check: str, found: str) -> Finding:
    """What is as it must be."""
    return Finding(check, State.OK, found)


def warning(check: str, found: str, to_do: str) -> Finding:
    """What the run can begin with."""
    return Finding(check, State.WARNING, found, to_do)


def fault(check: str, found: str, to_do: str) -> Finding:
    """What the run can't begin with."""
    return Finding(check, State.FAULT, found, to_do)


def faults(findings: Iterable[Finding]) -> list[Finding]:
    """Those that the run can't begin with."""
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


def size(number: float) -> str:
    """Bytes as people say them."""
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= one:
            return f"{number / one:.1f} {unit}"
    return f"{number / 1e3:.0f} kB"
