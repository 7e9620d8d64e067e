"""One instance's check, in the images and by the judge that its cases have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clawbench.attribution import environment_of
from clawbench.bench import Bench
from clawbench.case import Case
from clawbench.gold.judging import judge_both
from clawbench.gold.marks import Mark, Marks
from clawbench.names import CaseName
from clawbench.reporting import shown
from evaluation.lists import ListedInstance
from evaluation.outcomes import Verdict
from records.files import write_json

FOLDER = "gold"
"""The folder of a run that has the checks, in place of a claw's."""
_RESULT = "gold.json"


class GoldCheck:
    """The check of an instance; what is known of its environment already is not judged again."""

    def __init__(self, bench: Bench, listed: ListedInstance, *, empty: bool) -> None:
        """Nothing is read or made yet.

        Args:
            bench: of the worker.
            listed: the instance.
            empty: whether the empty patch is judged as well.
        """
        self.listed = listed
        self._bench = bench
        self._empty = empty
        self._case = Case(bench, CaseName(FOLDER, listed))
        self.mark: Mark | None = None

    @property
    def folder(self) -> Path:
        """Of its logs and its result."""
        return self._case.folder.path

    def judge(self) -> None:
        """Find out, or find that it is known.

        Raises:
            WorkspaceError, ImageBuildError, EvaluationError, InstanceError: it can't be found out.
            NotBegunError: the disk has no room for it.
        """
        self._bench.require_room()
        case, marks = self._case, Marks(self._bench.home)
        environment = environment_of(case)
        known = marks.find(environment) if self._bench.settings.resume else None
        is_known = known is not None and not (self._empty and known.judged.empty is Verdict.NOT_JUDGED)
        if known is None or not is_known:
            image = case.prepared.evaluation
            with case.evaluating("judging"):
                judged = judge_both(
                    case.instance,
                    client=self._bench.client,
                    image=image,
                    timeout=self._bench.settings.eval_timeout,
                    folder=self.folder,
                    labels=case.labels,
                    home=self._bench.home,
                    empty=self._empty,
                    say=case.say,
                )
            known = marks.keep(environment, judged)
        self.mark = known
        facts = {"instance_id": self.listed.instance_id, "remembered": is_known, **known.facts()}
        write_json(self.folder / _RESULT, facts)
        case.say("")

    @property
    def is_sound(self) -> bool:
        """Whether it is known, and nothing is wrong."""
        return self.mark is not None and not self.mark.judged.problems

    def explanation(self) -> str:
        """Why it is not sound, in a few lines."""
        problems = self.mark.judged.problems if self.mark is not None else ()
        return "\n".join(
            [
                f"the environment of {self.listed.instance_id} is broken on this machine:",
                *(f"  {problem}"[:400] for problem in problems),
                f"logs: {shown(self.folder)}",
            ]
        )


def results(run: Path) -> list[dict[str, Any]]:
    """The results of a run's checks, by instance."""
    return [json.loads(path.read_bytes()) for path in sorted((run / FOLDER).glob(f"*/{_RESULT}"))]
