"""What a run has spent: the sum over its request logs, which get a line when a request ends and are never shortened."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

from records.run_folder import RunDirectory


class Spent:
    """The spending of one run; each call reads only what is new in the logs."""

    def __init__(self, run: RunDirectory) -> None:
        """Read nothing yet."""
        self._run = run
        self._known: dict[Path, tuple[int, Decimal]] = {}

    def total(self) -> Decimal:
        """The US dollars that count against the run's limit, discarded attempts included.

        Raises:
            OSError: a log can't be read.
        """
        known = {}
        for log in self._run.request_logs():
            try:
                known[log] = _held_in(log, *self._known.get(log, (0, Decimal(0))))
            except FileNotFoundError:
                continue  # just moved to the discarded attempts; the next call finds it there
        self._known = known
        return sum((dollars for _, dollars in known.values()), Decimal(0))


def _held_in(log: Path, offset: int, before: Decimal) -> tuple[int, Decimal]:
    """Continue to add up a log; an incomplete line at its end is left for the next time.

    Args:
        log: a case's request log.
        offset: how many bytes were read before; if the log is shorter now, it is read from its start.
        before: US dollars in them.

    Returns:
        how many bytes are read now, and the US dollars in them.
    """
    with log.open("rb") as file:
        if file.seek(0, os.SEEK_END) < offset:
            offset, before = 0, Decimal(0)
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            offset += len(line)
            before += _held(line)
    return offset, before


def _held(line: bytes) -> Decimal:
    if b'"held": "' not in line:  # there may be hundreds of thousands of lines, most without a cost
        return Decimal(0)
    try:
        return Decimal(json.loads(line)["cost"]["held"])
    except (ValueError, ArithmeticError, LookupError, TypeError):
        return Decimal(0)
