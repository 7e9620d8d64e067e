"""What a case is called: in test ids, in folders, in the engine."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from evaluation.lists import ListedInstance, by_id
from records.case import folder_name, parts_of


class CaseName(NamedTuple):
    """Which case: a claw, an instance, and which of the claw's independent samples of it."""

    claw: str
    """Without a hyphen, as all claws' names are."""
    listed: ListedInstance
    sample: int = 1
    """From 1."""

    @property
    def case_id(self) -> str:
        """`<claw>-<instance_id>` for the first sample, with `-s<sample>` behind it for the others."""
        return f"{self.claw}-{folder_name(self.listed.instance_id, self.sample)}"

    @classmethod
    def parse(cls, case_id: str) -> CaseName | None:
        """The case of an id, None where there is no such instance; the claw is not looked up."""
        claw, _, rest = case_id.partition("-")
        found = _instance_of(rest)
        return cls(claw, *found) if found is not None else None


@cache
def _instance_of(folder: str) -> tuple[ListedInstance, int] | None:
    """The instance and the sample that a folder's name tells; asked for with every report."""
    instance_id, sample = parts_of(folder)
    listed = by_id().get(instance_id)
    return (listed, sample) if listed is not None else None
