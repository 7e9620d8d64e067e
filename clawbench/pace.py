"""How fast a run goes, and what its last command has before it: read from the journal alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from records.journal import Entry, Reading

WINDOW = 1800.0
"""Seconds of the recent past that a rate is taken from."""
FEWEST = 8
"""Cases that a rate is taken from at the least, however long ago they ended."""
ENDED = ("finished", "errored")
"""Events after which nothing more becomes of a case, unless it is begun again."""


@dataclass(frozen=True)
class Rate:
    """How fast cases ended lately, those that broke included."""

    cases: int
    seconds: float
    """In how many seconds."""

    @property
    def per_hour(self) -> float:
        """Cases an hour."""
        return 3600 * self.cases / self.seconds


def seconds(text: str) -> float:
    """A time in a record, as seconds since 1970."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


def _since_started(journal: Reading) -> tuple[Entry | None, list[Entry]]:
    """The last command's start, and what happened to cases since."""
    started = journal.of_run("started")
    if not started:
        return None, []
    return started[-1], [
        entry for entry in journal.entries if entry.case is not None and entry.number > started[-1].number
    ]


def left_of(journal: Reading) -> int:
    """How many cases the last command has before it, those at work included."""
    started, since = _since_started(journal)
    if started is None:
        return 0
    last = {entry.case: entry.event for entry in since}
    return max(0, int(started.facts.get("left", 0)) - sum(event in ENDED for event in last.values()))


def rate_of(journal: Reading, now: float | None) -> Rate | None:
    """How fast cases ended lately in the last command.

    Args:
        journal: of the run.
        now: seconds since 1970; None where the command is over: its last event counts as now.

    Returns:
        None where none ended.
    """
    started, since = _since_started(journal)
    # an attempt that another followed was no end
    last = {entry.case: entry for entry in since}
    times = sorted(seconds(entry.time) for entry in last.values() if entry.event in ENDED)
    if started is None or not times:
        return None
    until = now if now is not None else times[-1]
    first = max(seconds(started.time), until - WINDOW)
    recent = [moment for moment in times if moment > first]
    if len(recent) < FEWEST:
        recent = times[-FEWEST:]
        first = times[-FEWEST - 1] if len(times) > FEWEST else seconds(started.time)
    return Rate(len(recent), max(1.0, until - first))
