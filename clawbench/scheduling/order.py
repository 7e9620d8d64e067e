"""In which order cases are run: settled once by the controller, and the same in every worker.

What has ended before comes first: it costs nothing, and the user sees at once how the run stands. Then the
instances, longest first, so that no long one is left for the end while all other workers have nothing to do. The
cases of an instance stand next to each other, as they share its image.
"""

from __future__ import annotations

from statistics import median

import pytest
from pydantic import BaseModel, ConfigDict

from clawbench.selection import name_of
from clawbench.state import verdict_of
from evaluation.lists import ListedInstance, by_id
from records.durations import Durations
from records.run import RunDirectory, RunError


class Order(BaseModel):
    """What cases are ordered by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    finished: frozenset[str] = frozenset()
    """The ids of cases whose verdict is only repeated."""
    seconds: dict[str, float] = {}
    """What a case takes, by instance; only where it is known."""
    usual: dict[str, float] = {}
    """What a case takes, by the instance's set: the median of those that are known."""

    @classmethod
    def settle(cls, run: RunDirectory, durations: Durations, *, resume: bool) -> Order:
        """What is known as a command begins.

        Args:
            run: the run's folder.
            durations: of this machine.
            resume: whether the run's verdicts stay.

        Raises:
            RunError: a case has an outcome that is none.
        """
        finished = _finished(run)
        known = by_id()
        seconds = {name: taken for name, taken in durations.by_instance().items() if name in known}
        by_set: dict[str, list[float]] = {}
        for name, taken in seconds.items():
            by_set.setdefault(known[name].set_name, []).append(taken)
        return cls(
            finished=finished if resume else frozenset(),
            seconds=seconds,
            usual={name: median(taken) for name, taken in by_set.items()},
        )

    def expected(self, listed: ListedInstance) -> float:
        """The seconds that a case of an instance will take, for all that is known."""
        found = self.seconds.get(listed.instance_id, self.usual.get(listed.set_name))
        return found if found is not None else median(self.usual.values() or [0.0])

    def arrange(self, items: list[pytest.Item]) -> None:
        """Sort cases as they are to be run; those of an instance stay as they are, and so does any other test."""

        def place(item: pytest.Item) -> tuple[bool, float, str]:
            name = name_of(item)
            if name is None:
                return False, 0.0, ""
            return name.case_id not in self.finished, -self.expected(name.listed), name.listed.instance_id

        items.sort(key=place)


def _finished(run: RunDirectory) -> frozenset[str]:
    """The cases whose verdicts a rerun only repeats."""
    found = set()
    for case in run.cases():
        try:
            if verdict_of(case) is not None:
                found.add(f"{case.claw}-{case.path.name}")
        except OSError as error:
            raise RunError(
                f"{case.path} can't be read ({error}): see to the disk, or move the folder elsewhere, which has "
                "the case run anew, then run the same command again"
            ) from error
        except ValueError as error:
            raise RunError(
                f"{case.path} has an outcome which this version does not know ({error}): go on by the version "
                "that made it, or move the folder elsewhere, then run the same command again"
            ) from error
    return frozenset(found)
