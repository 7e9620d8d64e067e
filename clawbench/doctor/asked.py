"""What a command asks for, as far as checks need to know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from adapters.registry import installed
from adapters.runtimes import default_home
from clawbench.model_choice import Choice
from clawbench.names import CaseName
from clawbench.scheduling.workers import evaluations_beside
from clawbench.settings import Settings
from evaluation.lists import ListedInstance


@dataclass(frozen=True)
class Asked:
    """A run that is meant."""

    settings: Settings
    choice: Choice | None
    """Of its model; None where that can't be used as asked, which is a finding by itself."""
    claws: Sequence[str]
    """Those that cases are made for, installed or not."""
    cases: Sequence[CaseName]
    """Those that are still to be run."""
    rows: Path
    """The folder that has the rows of real instances, or gets them."""
    offline: bool = False
    """Whether nothing outside this machine and the engine may be asked."""
    request: bool = True
    """Whether the model may be asked, which costs a fraction of a cent."""
    sample: int = 3
    """How many images that are not here are asked of their registry, each of which counts as a pull there."""

    @property
    def agents(self) -> int:
        """How many are at work at once."""
        return self.settings.agents

    @property
    def evaluations(self) -> int:
        """How many are made at once beside them."""
        return evaluations_beside(self.settings)

    @property
    def workers(self) -> int:
        """How many processes there are for both, each with one container at a time."""
        return self.agents + self.evaluations

    @cached_property
    def installed(self) -> list[str]:
        """The claws of it that can be run."""
        return [name for name in self.claws if installed(name)]

    @cached_property
    def instances(self) -> list[ListedInstance]:
        """Those of its cases, each once."""
        return list(dict.fromkeys(name.listed for name in self.cases))

    @property
    def real(self) -> list[ListedInstance]:
        """Its real instances."""
        return [listed for listed in self.instances if not listed.embedded]

    @property
    def home(self) -> Path:
        """Installed runtimes, and what all runs on this machine share."""
        return default_home()

    @property
    def is_real(self) -> bool:
        """Whether the run costs money, or more time than one would lose lightly."""
        return self.settings.has_price or bool(self.real)
