"""The order of cases. The controller decides it once; all workers use the same.

Finished cases come first: they cost nothing, and the user immediately sees the state of the run. Then come the
instances, longest first, so that no long one is left for the end while other workers are idle. The cases of an instance
are next to each other, because they share its image.
"""

from __future__ import annotations

from statistics import median

from pydantic import BaseModel, ConfigDict

from evaluation.lists import by_id
from records.case_id import CaseId
from records.durations import Durations
from records.run_folder import RunDirectory, RunError


class Order(BaseModel):
    """The data that determines the order of cases."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    finished: frozenset[str] = frozenset()
    """The ids of cases that have a final verdict; they are only reported."""
    seconds: dict[str, float] = {}
    """How long a case of an instance takes, by instance, if that is known."""
    usual: dict[str, float] = {}
    """The median of the known durations, by set."""

    @classmethod
    def settle(cls, run: RunDirectory, durations: Durations, *, resume: bool) -> Order:
        """Read this data at the start of a command.

        Args:
            run: the run's folder.
            durations: the known ones of this machine.
            resume: whether the run's verdicts are kept.

        Raises:
            RunError: a case can't be read, or has an unknown outcome.
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

    def expected_seconds(self, instance_id: str) -> float:
        """How long a case of an instance will probably take."""
        found = self.seconds.get(instance_id, self.usual.get(by_id()[instance_id].set_name))
        return found if found is not None else median(self.usual.values() or [0.0])

    def place(self, case: CaseId) -> tuple[bool, float, str]:
        """The sort key of a case; it is the same for all unfinished cases of an instance."""
        return str(case) not in self.finished, -self.expected_seconds(case.instance_id), case.instance_id


def _finished(run: RunDirectory) -> frozenset[str]:
    found = set()
    for case in run.cases():
        try:
            if case.final_verdict() is not None:
                found.add(str(case.id))
        except OSError as error:
            raise RunError(
                f"{case.path} can't be read ({error}): check the disk, or move the folder away so that the case is "
                "run again; then run the same command again"
            ) from error
    return frozenset(found)
