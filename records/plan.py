"""The plan of a run: every case that was asked for under its run id, by whichever command.

What is planned and has no outcome is missing, whatever folders there are: a share of resolved cases is told of
the plan, so that leaving a case out can't make a number better. The plan only grows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from records.files import write_json


class PlannedCase(NamedTuple):
    """What tells a case from all others of its run."""

    claw: str
    instance_id: str
    sample: int = 1
    """Counted from 1."""


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

    def __init__(self, path: Path) -> None:
        """Name a plan's file; nothing is read or made."""
        self.path = path

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
            raise PlanError(f"{self.path} is not a plan: {error.errors()[0]['msg']}") from error
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
        write_json(self.path, json.loads(held.model_dump_json()))
        return len(union) - len(before)
