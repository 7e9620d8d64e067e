"""The plan of a run: every case that was asked for under its run id, by whichever command.

What is planned and has no outcome is missing, whatever folders there are: a share of resolved cases is told of
the plan, so that leaving a case out can't make a number better. The plan only grows.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from records.files import as_json, write_atomically
from records.journal import Journal, PlannedCase

__all__ = ["Plan", "PlanError", "PlannedCase"]


class PlanError(ValueError):
    """The plan of a run can't be read; the message says why."""


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid")
    claw: str
    sample: int
    instance_ids: list[str]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    planned: list[_Group]


class Plan:
    """`<run>/plan.json`. It is written by the one process that holds the run, and may be read by any."""

    def __init__(self, path: Path, journal: Journal) -> None:
        """Name a plan's file and the journal that knows of it; nothing is read or made."""
        self.path = path
        self._journal = journal

    def cases(self) -> list[PlannedCase]:
        """All cases that were asked for so far, by claw, instance and sample; none where there is no plan (yet).

        Raises:
            PlanError: the file is no plan.
            OSError: it can't be read.
        """
        try:
            held = _File.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return []
        except ValidationError as error:
            raise PlanError(
                f"{self.path} is not a plan: {error.errors()[0]['msg']}; take it from a copy, or another --run-id"
            ) from error
        return sorted(
            PlannedCase(group.claw, instance_id, group.sample)
            for group in held.planned
            for instance_id in group.instance_ids
        )

    def add(self, cases: Iterable[PlannedCase]) -> int:
        """Add what a command asks for; on the disk when this returns.

        Returns:
            how many cases are new to the run.

        Raises:
            PlanError: what is there is no plan.
            OSError: it can't be read or written.
        """
        before = set(self.cases())
        union = before | set(cases)
        if union == before:
            return 0
        groups: dict[tuple[str, int], list[str]] = {}
        for case in sorted(union):
            groups.setdefault((case.claw, case.sample), []).append(case.instance_id)
        held = _File(
            planned=[
                _Group(claw=claw, sample=sample, instance_ids=ids)
                for (claw, sample), ids in sorted(groups.items())
            ]
        )
        text = as_json(held.model_dump())
        # first the journal: no plan is there that it does not know of
        self._journal.write(
            "planned", cases=len(union), more=len(union) - len(before), sha256=sha256(text).hexdigest()
        )
        write_atomically(self.path, text)
        return len(union) - len(before)
