"""The run that a command would make, as far as the checks need to know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from adapters.registry import installed
from clawbench.run.model_choice import Choice
from clawbench.run.settings import Settings
from evaluation.lists import ListedInstance, by_id
from records.case_id import CaseId


@dataclass(frozen=True)
class PlannedRun:
    """A run that has not begun."""

    settings: Settings
    choice: Choice | None
    """The model; None if it can't be used as asked, which is a finding of its own."""
    claws: Sequence[str]
    """The selected claws, installed or not."""
    cases: Sequence[CaseId]
    """The cases that are still to be run."""
    rows: Path
    """The folder for the rows of real instances."""
    offline: bool = False
    """Whether nothing outside this machine and the engine may be asked."""
    request: bool = True
    """Whether the model may be asked, which costs a fraction of a cent."""
    sample: int = 3
    """How many missing images to ask their registry about; there each question counts as a pull."""

    @property
    def workers(self) -> int:
        """Processes for agents and evaluations, each with one container at a time."""
        return self.settings.agents + self.settings.evaluators

    @cached_property
    def installed(self) -> list[str]:
        """The selected claws that are installed."""
        return [name for name in self.claws if installed(name)]

    @cached_property
    def instances(self) -> list[ListedInstance]:
        """The instances of the cases, each once."""
        return list(dict.fromkeys(by_id()[case.instance_id] for case in self.cases))

    @property
    def real(self) -> list[ListedInstance]:
        """Those of the instances that are not embedded."""
        return [listed for listed in self.instances if not listed.embedded]
