"""The name of a case, from which test ids, folders, records and container labels are made."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FURTHER_SAMPLE = re.compile(r"(.+)-s([2-9]|[1-9][0-9]+)")
"""No instance id ends like this."""

MOST_SAMPLES = 1000
"""Samples that a run may have of each claw and instance."""


@dataclass(frozen=True, order=True)
class CaseId:
    """A claw, an instance, and the number of the sample; sorted in this order."""

    claw: str
    """The claw's name, which has no hyphen."""
    instance_id: str
    sample: int = 1
    """Counted from 1."""

    def __str__(self) -> str:
        """`<claw>-<instance_id>` for the first sample, `<claw>-<instance_id>-s<sample>` for the others."""
        return f"{self.claw}-{self.folder}"

    @property
    def folder(self) -> str:
        """The name of the case's folder below its claw's folder.

        The first sample's folder is named like the instance, so that samples can be added to a run later.
        """
        return self.instance_id if self.sample == 1 else f"{self.instance_id}-s{self.sample}"

    @classmethod
    def parse(cls, text: str) -> CaseId | None:
        """Read what `str` writes; None if the text is not a case id. Claw and instance need not exist."""
        claw, _, folder = text.partition("-")
        return cls.from_folder(claw, folder) if claw and folder else None

    @classmethod
    def from_folder(cls, claw: str, folder: str) -> CaseId:
        """Read the name of a case's folder."""
        further = _FURTHER_SAMPLE.fullmatch(folder)
        return cls(claw, further[1], int(further[2])) if further else cls(claw, folder)
