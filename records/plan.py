"""The plan of a run: every case that any of its commands selected.

A planned case without an outcome counts as missing, whatever folders exist. The numbers cover the whole plan, so that a
case can't be left out unnoticed. The plan only grows.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from records.case_id import CaseId
from records.files import RunError, as_json, write_atomically
from records.journal import Journal


class Plan:
    """`<run>/plan.json`. Only the process that has locked the run writes it; any process may read it."""

    def __init__(self, path: Path, journal: Journal) -> None:
        """Read and write nothing yet; the journal vouches for the file."""
        self.path = path
        self._journal = journal

    def cases(self) -> list[CaseId]:
        """All planned cases, sorted; none if there is no plan yet.

        Raises:
            RunError: the file is not a plan.
            OSError: it can't be read.
        """
        from records.models import PlanRecord, read_record  # noqa: PLC0415 - pydantic is slow to import

        record = read_record(self.path, PlanRecord)
        if record is None and self.path.exists():
            raise RunError(f"{self.path} is incomplete: restore it from a copy, or choose another --run-id")
        return sorted(
            CaseId(group.claw, instance_id, group.sample)
            for group in (record.planned if record is not None else ())
            for instance_id in group.instance_ids
        )

    def add(self, cases: Iterable[CaseId]) -> int:
        """Add the cases that a command selects; they are on disk when this returns.

        Returns:
            how many of them are new to the run.

        Raises:
            RunError: the existing file is not a plan.
            OSError: it can't be read or written.
        """
        from records.models import PlanGroup, PlanRecord  # noqa: PLC0415

        before = set(self.cases())
        union = before | set(cases)
        if union == before:
            return 0
        groups: dict[tuple[str, int], list[str]] = {}
        for case in sorted(union):
            groups.setdefault((case.claw, case.sample), []).append(case.instance_id)
        planned = tuple(
            PlanGroup(claw=claw, sample=sample, instance_ids=tuple(ids))
            for (claw, sample), ids in sorted(groups.items())
        )
        text = as_json(PlanRecord(planned=planned).facts())
        more = len(union) - len(before)
        # the journal comes first, so that there is never a plan that it does not vouch for
        self._journal.write("planned", cases=len(union), more=more, sha256=sha256(text).hexdigest())
        write_atomically(self.path, text)
        return more
