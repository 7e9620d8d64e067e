"""`clawbench gold`: the official harness on an instance's own fix and on no change.

The first must resolve the instance, the second must not; otherwise the instance's environment is broken here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError

import demo.task_images
from clawbench.run.case import Case
from clawbench.run.environment_marks import GoldVerdicts, Mark, Marks
from clawbench.run.manifest import architecture_of, environment_of
from clawbench.run.worker_context import WorkerContext
from common.errors import known_error
from evaluation.harness import judge
from evaluation.instances import Instance
from evaluation.judgement import Judgement
from evaluation.lists import ListedInstance
from evaluation.outcomes import Verdict
from records.case_id import CaseId
from records.files import write_json
from records.models import EvalNetwork
from workspace.instance_images import official_names
from workspace.prepare import recipe_digest
from workspace.running import ended_from_within

FOLDER = "gold"
"""The folder of a run that holds the checks, in place of a claw's folder."""
_RESULT = "gold.json"
_NETWORKS = {"auto": (False, True), "none": (False,), "open": (True,)}
"""By `--eval-network`, whether the tests get a network: tried in this order."""


def judge_both(
    instance: Instance,
    *,
    client: docker.DockerClient,
    image: str,
    timeout: float,
    folder: Path,
    labels: Mapping[str, str],
    home: Path,
    networks: Sequence[bool] = (False,),
    empty: bool = True,
    repeat: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> GoldVerdicts:
    """Let the harness judge the gold patch, then the empty one.

    Args:
        instance: the row.
        client: the engine.
        image: the image that its cases are judged in.
        timeout: seconds for the tests of each patch.
        folder: takes the harness's logs, below `gold` and `empty`.
        labels: for the containers.
        home: the folder of installed runtimes.
        networks: whether the tests get a network; each is tried until the gold patch resolves, and the one that does is
            used for everything else.
        empty: whether the empty patch is judged too, which takes as long again.
        repeat: how often the gold patch is judged, to find tests that do not always end alike.
        say: prints a line of progress.

    Raises:
        EvaluationError: there was no verdict, which says nothing about the instance.
    """

    def verdict_on(patch: str, name: str, *, network: bool) -> Judgement:
        say(f"the official harness judges the {name} patch")
        return judge(
            instance,
            patch,
            client=client,
            image=image,
            model_name=name.partition("-")[0],
            timeout=timeout,
            folder=folder / name,
            labels=labels,
            ended_from_within=partial(ended_from_within, client),
            home=home,
            network=network,
        )

    for network in networks:
        first = verdict_on(instance.patch, "gold", network=network)
        if first.verdict is Verdict.RESOLVED:
            break
    runs = [first]
    runs += [verdict_on(instance.patch, f"gold-{run}", network=network) for run in range(2, repeat + 1)]
    gold = next((run for run in runs if run.verdict is not Verdict.RESOLVED), runs[0])
    resolved = sum(run.verdict is Verdict.RESOLVED for run in runs)
    nothing = verdict_on("", "empty", network=network).verdict if empty else Verdict.NOT_JUDGED
    used: EvalNetwork = "open" if network else "none"
    return GoldVerdicts(gold.verdict, nothing, gold.failing_tests, gold.detail, repeat, resolved, used)


class GoldCheck:
    """The check of one instance, in the images and by the harness that its cases use."""

    def __init__(self, context: WorkerContext, listed: ListedInstance, *, empty: bool, repeat: int = 1) -> None:
        """Nothing is read or made yet.

        Args:
            context: of the worker.
            listed: the instance.
            empty: whether the empty patch is judged too.
            repeat: how often the gold patch is judged.
        """
        self._repeat = repeat
        self.listed = listed
        self._context = context
        self._empty = empty
        self._case = Case(context, CaseId(FOLDER, listed.instance_id))
        self.mark: Mark | None = None

    @property
    def folder(self) -> Path:
        """The folder of its logs and its result."""
        return self._case.folder.path

    def judge(self) -> None:
        """Judge the instance, unless its environment was judged before.

        Raises:
            WorkspaceError, ImageBuildError, EvaluationError, InstanceError: it can't be judged.
            NotBegunError: the disk has no room for it.
        """
        context, case = self._context, self._case
        context.require_room()
        marks, environment = Marks(context.home), environment_of(case)
        mark = marks.find(environment) if context.settings.resume else None
        if mark is not None and (
            (self._empty and mark.judged.empty is Verdict.NOT_JUDGED) or mark.judged.times < self._repeat
        ):
            mark = None
        is_known = mark is not None
        if mark is None:
            image = case.prepared.evaluation
            with case.evaluating("judging"):
                judged = judge_both(
                    case.instance,
                    client=context.client,
                    image=image,
                    timeout=context.settings.eval_timeout,
                    folder=self.folder,
                    labels=case.labels,
                    home=context.home,
                    networks=_NETWORKS[context.settings.eval_network],
                    empty=self._empty,
                    repeat=self._repeat,
                    say=case.say,
                )
            mark = marks.keep(environment, judged)
        self.mark = mark
        facts = {
            "instance_id": self.listed.instance_id,
            "remembered": is_known,
            **mark.facts().model_dump(mode="json"),
        }
        write_json(self.folder / _RESULT, facts)
        case.say("")

    @property
    def is_sound(self) -> bool:
        """Whether the instance was judged, and no problem was found."""
        return self.mark is not None and not self.mark.judged.problems

    def explanation(self) -> str:
        """Why it is not sound, in a few lines."""
        problems = self.mark.judged.problems if self.mark is not None else ()
        head = f"the environment of {self.listed.instance_id} is broken on this machine:"
        return "\n".join([head, *(f"  {problem}"[:400] for problem in problems)])


def results(run: Path) -> list[dict[str, Any]]:
    """The results of a run's checks, by instance."""
    return [json.loads(path.read_bytes()) for path in sorted((run / FOLDER).glob(f"*/{_RESULT}"))]


def broken(context: WorkerContext, cases: Iterable[CaseId]) -> dict[str, Mark]:
    """The instances that are known to be broken, each with its newest mark that fits.

    An image that is not here yet may turn out to be the one that was judged, so any image fits then. Each case's own
    manifest is exact.

    Args:
        context: of the controller.
        cases: the selected ones, whose rows have been read.
    """
    known = Marks(context.home).all()
    by_instance = {case.instance_id: case for case in cases if case.instance_id in known}
    found = {name: _latest(Case(context, case), known[name]) for name, case in by_instance.items()}
    return {name: mark for name, mark in found.items() if mark is not None and mark.judged.problems}


def _latest(case: Case, marks: Iterable[Mark]) -> Mark | None:
    try:
        wanted = {
            "row_sha256": case.instance.digest,
            "preparation": recipe_digest(),
            "harness": case.harness,
            "architecture": architecture_of(case),
        }
        if image := _image_id(case):
            wanted["source_image"] = image
    except Exception as error:
        if known_error(error) is None:
            raise
        return None  # the case itself will report it
    fitting = [mark for mark in marks if wanted.items() <= vars(mark.environment).items()]
    return fitting[-1] if fitting else None


def _image_id(case: Case) -> str | None:
    """The id of a case's image; None if it is not here."""
    instance_id = case.listed.instance_id
    if case.listed.embedded:
        names = [demo.task_images.image_name(instance_id)]
    else:
        names = official_names(instance_id, case.instance.image)
    for name in names:
        try:
            return str(case.context.client.images.get(name).id)
        except APIError:  # not here, or not a name that an image can have
            continue
    return None
