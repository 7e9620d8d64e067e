"""The status of a run as text, the most important lines first."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evaluation.outcomes import Outcome
from records.status import MOST_ERRORS, Rate, RunStatus


def view(status: RunStatus) -> RenderableType:
    """The output of `clawbench status`."""
    head = Table.grid(padding=(0, 2))
    head.add_column(style="bold", no_wrap=True)
    head.add_column(overflow="fold")
    for name, text in _lines(status):
        head.add_row(name, Text(text))
    parts: list[RenderableType] = [Text(f"run {status.run_id}: {status.state}", style="bold"), head]
    if status.outcomes:
        parts += ["", _outcomes(status)]
    if status.running:
        parts += ["", _running(status)]
    if status.broken:
        parts += ["", _broken(status)]
    return Group(*parts)


def _lines(status: RunStatus) -> list[tuple[str, str]]:
    of_plan = f"{status.done:,} of {status.planned:,} planned cases, {status.resolved:,} of them resolved"
    lines = [
        ("model", status.model),
        ("created", status.created),
        ("done", of_plan),
        ("in progress", f"{len(status.running):,}"),
        ("waiting", f"{status.waiting:,}"),
        ("errors", f"{status.errors:,}" + (" (the same command reruns them)" if status.errors else "")),
        ("spent", _spent(status)),
        ("rate", _rate(status.rate)),
        ("time left", _time_left(status)),
    ]
    if status.state != "running":
        lines.append(("last event", status.last or "none"))
    if status.torn:
        lines.append(("journal", f"{status.torn:,} incomplete lines were skipped"))
    lines += [("unreadable", path) for path in status.unreadable[:MOST_ERRORS]]
    if len(status.unreadable) > MOST_ERRORS:
        lines.append(("unreadable", f"and {len(status.unreadable) - MOST_ERRORS:,} more"))
    return lines


def _spent(status: RunStatus) -> str:
    if status.spent is None:
        return "not counted"
    limit = f" of ${status.spend_limit}" if status.spend_limit is not None else ""
    return f"${status.spent:,.4f}{limit}"


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return "unknown: no case has ended yet in the last command"
    return f"{rate.per_hour:,.1f} cases per hour ({rate.cases:,} in {duration(rate.seconds)})"


def _time_left(status: RunStatus) -> str:
    left = f"{status.left:,} {'case' if status.left == 1 else 'cases'} of the last command"
    if status.state != "running":
        return f"not running; unfinished: {left}" if status.left else "not running; nothing is unfinished"
    if status.seconds_left is None:
        return f"unknown; unfinished: {left}"
    return f"about {duration(status.seconds_left)} for {left}, at this rate"


def duration(seconds: float) -> str:
    """A length of time in at most two units."""
    minutes = int(seconds // 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def _outcomes(status: RunStatus) -> Table:
    table = Table("claw", box=None, pad_edge=False)
    there = [outcome for outcome in Outcome if any(counts.get(outcome) for counts in status.outcomes.values())]
    for outcome in there:
        table.add_column(str(outcome).replace("_", " "), justify="right")
    for name, counts in status.outcomes.items():
        table.add_row(name, *(f"{counts.get(outcome, 0):,}" for outcome in there))
    return table


def _running(status: RunStatus) -> Table:
    table = Table("worker", "case", "doing", box=None, pad_edge=False)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    for one in status.running:
        case = duration(one.case_seconds) if one.case_seconds is not None else "-"
        table.add_row(one.worker, Text(one.case), Text(one.doing), duration(one.step_seconds), case)
    return table


def _broken(status: RunStatus) -> Table:
    shown = f"latest {MOST_ERRORS} errors" if status.errors > MOST_ERRORS else "errors"
    table = Table("ended", shown, "reason", box=None, pad_edge=False)
    for one in status.broken:
        table.add_row(one.time, Text(one.case), Text(one.detail, overflow="fold"))
    return table
