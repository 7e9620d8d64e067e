"""Whether the embedded tasks are what they claim to be, by the official harness and by git."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import docker

import demo.task_images
from clawbench.preflight.gold_checks import judge_both
from clawbench.run.environment_marks import GoldVerdicts
from demo.leaks import LEAK_PROBES
from evaluation.instances import load_instance
from evaluation.lists import by_id
from workspace.owner import labels
from workspace.prepare import WORKDIR, prepare
from workspace.throwaway import run_script, throwaway


@dataclass(frozen=True)
class TaskCheck:
    """What was found about one task."""

    instance_id: str
    judged: GoldVerdicts
    leaks_before: frozenset[str]
    leaks_after: frozenset[str]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with it; () if nothing is."""
        problems = list(self.judged.problems)
        if missing := sorted(set(LEAK_PROBES) - self.leaks_before):
            problems.append(f"leaks that should be there and are not: {', '.join(missing)}")
        if self.leaks_after:
            problems.append(f"leaks that preparation left: {', '.join(sorted(self.leaks_after))}")
        return tuple(problems)

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        before = f"{len(self.leaks_before)} of {len(LEAK_PROBES)}"
        return self.instance_id, self.judged.gold, self.judged.empty, before, str(len(self.leaks_after))


def check_tasks(
    client: docker.DockerClient, ids: Sequence[str], *, home: Path, say: Callable[[str], None]
) -> Iterator[TaskCheck]:
    """Check tasks of the embedded set one by one.

    Args:
        client: the engine.
        ids: instances of the embedded set.
        home: the folder of caches.
        say: prints a line of progress.

    Raises:
        ImageBuildError, WorkspaceError, EvaluationError: a check could not be made.
    """
    marks = labels("tasks-check")
    for instance_id in ids:
        say(f"{instance_id}: image")
        demo.task_images.ensure_image(client, instance_id, cache=home, say=say)
        source = demo.task_images.image_name(instance_id)
        instance = load_instance(by_id()[instance_id], demo=demo.task_images.TASK_REPO)
        before = _leaks(client, source, marks)
        say(f"{instance_id}: stripping")
        prepared = prepare(
            client,
            source,
            instance_id=instance_id,
            base_commit=instance.base_commit,
            locks=home / "locks",
            labels=marks,
            say=say,
        )
        after = _leaks(client, prepared.tag, marks)
        say(f"{instance_id}: judging gold and empty")
        with tempfile.TemporaryDirectory(prefix="clawbench-check-") as folder:
            judged = judge_both(
                instance,
                client=client,
                image=prepared.evaluation,
                timeout=600,
                folder=Path(folder),
                labels=marks,
                home=home,
            )
        yield TaskCheck(instance_id, judged, before, after)


def _leaks(client: docker.DockerClient, image: str, marks: Mapping[str, str]) -> frozenset[str]:
    """The leaks in an image's repository, by the probes of the task set."""
    kinds = list(LEAK_PROBES)
    scripts = {f"probe{number}.sh": LEAK_PROBES[kind] for number, kind in enumerate(kinds)}
    scripts["all.sh"] = f"cd {WORKDIR}\n" + "".join(
        f"if sh /clawbench/probe{number}.sh >/dev/null 2>&1; then echo found {number}; fi\n"
        for number in range(len(kinds))
    )
    with throwaway(client, image, marks, scripts) as container:
        lines = run_script(container, ["/clawbench/all.sh"])
    return frozenset(kinds[int(line.removeprefix("found "))] for line in lines)
