"""What a rehearsal really did, noted outside the run's folder: what the run's own records are held against.

One line per begin and end of a claw's and of a judge's work, appended by the worker that does it; lines of several
processes do not mix. What is thrown at the run is noted in it too. Plugins of a rehearsal find it by `VARIABLE`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

VARIABLE = "CLAWBENCH_REHEARSAL"
"""Names the rehearsal's folder."""
LEDGER = "ledger.jsonl"
READY = "worker is ready"
"""The event of a worker that has all that pytest-xdist tells it at its start."""
SYNCED = "synced.jsonl"
"""A ledger of its own: how much of which file was on the disk."""


def replace(replacements: Mapping[str, object]) -> None:
    """Put something in the place of what is there, by module and name (raises LookupError where nothing is)."""
    for name, replacement in replacements.items():
        standing(name)  # what is no more where it was would be reached elsewhere
        module, _, attribute = name.rpartition(".")
        setattr(import_module(module), attribute, replacement)


def standing(name: str) -> Any:
    """What is there by the name of a module and its own (raises LookupError)."""
    module, _, attribute = name.rpartition(".")
    found = import_module(module)
    if not hasattr(found, attribute):
        raise LookupError(f"the rehearsal replaces {name}, which is not there any more")
    return getattr(found, attribute)


@dataclass(frozen=True)
class Ledger:
    """The ledger of a rehearsal."""

    path: Path

    def note(self, event: str, **more: Any) -> None:
        """Append a line: what happened, in which process, and what else is worth knowing."""
        line = json.dumps({"event": event, "pid": os.getpid(), **more}).encode() + b"\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def rows(self) -> Iterator[dict[str, Any]]:
        """All lines, in the order in which they were written."""
        if self.path.exists():
            with self.path.open(encoding="utf-8") as file:
                for line in file:
                    yield json.loads(line)

    def attempt(self, kind: str, case_id: str) -> int:
        """Which attempt of its kind at a case this is, counted from 1 over all processes."""
        counter = self.path.parent / "attempts" / f"{kind} {case_id}"
        counter.parent.mkdir(exist_ok=True)
        handle = os.open(counter, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, b".")
            return os.fstat(handle).st_size
        finally:
            os.close(handle)
