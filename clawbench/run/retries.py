"""How often each case was run again within a command, and why.

A case is run again only after an infrastructure error or the death of its worker, never because of what a claw did. The
count is in a file, so it outlives the worker. The journal records each retry as well. What earlier attempts spent is
still counted.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from records.files import write_atomically

_FIRST_PAUSE, _LONGER = 2.0, 4
"""Seconds before the first retry, and the factor by which each further pause grows."""


class Retries:
    """How often each case of a command was run again, and why."""

    def __init__(self, run: Path) -> None:
        """Choose the folder of the counts, which is created at the first retry.

        Args:
            run: the run's folder.
        """
        self._folder = run / ".retries"

    def forget(self) -> None:
        """Start counting again, for a new command."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def reasons(self, case_id: str) -> list[str]:
        """Why a case was run again: one reason for each retry."""
        try:
            found: list[str] = json.loads((self._folder / f"{case_id}.json").read_bytes())
        except FileNotFoundError:
            return []
        return found

    def add(self, case_id: str, why: str) -> int:
        """Count a retry of a case.

        Returns:
            how many retries the case has now.
        """
        reasons = [*self.reasons(case_id), why]
        write_atomically(self._folder / f"{case_id}.json", json.dumps(reasons).encode("utf-8", "surrogatepass"))
        return len(reasons)

    def counts(self) -> list[int]:
        """The number of retries of each case that has any."""
        return [len(self.reasons(path.stem)) for path in sorted(self._folder.glob("*.json"))]


def pause_before(retry: int) -> float:
    """Seconds to wait before a retry.

    Args:
        retry: its number, from 1.
    """
    return _FIRST_PAUSE * float(_LONGER ** (retry - 1))
