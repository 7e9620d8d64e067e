"""Is the embedded task set what it claims to be? Shown by the official harness and by git, task by task."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import docker

import demo.images
from clawbench.gold.judging import Judged, judge_both
from demo.leaks import LEAK_PROBES
from evaluation.instances import load_instance
from evaluation.lists import listed_instances
from evaluation.outcomes import Verdict
from workspace.owner import labels
from workspace.prepare import WORKDIR, prepare
from workspace.throwaway import run_script, throwaway


@dataclass(frozen=True)
class TaskCheck:
    """What was found of one task."""

    instance_id: str
    gold: Verdict
    empty: Verdict
    leaks_before: frozenset[str]
    leaks_after: frozenset[str]
    problems: tuple[str, ...] = field(default=())

    @property
    def is_sound(self) -> bool:
        """Whether all of it is as it must be."""
        return not self.problems

    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        before = f"{len(self.leaks_before)} of {len(LEAK_PROBES)}"
        return self.instance_id, self.gold, self.empty, before, str(len(self.leaks_after))


def check_tasks(
    client: docker.DockerClient, ids: Sequence[str], *, home: Path, say: Callable[[str], None]
) -> Iterator[TaskCheck]:
    """Check tasks of the embedded set one by one.

    Args:
        client: the engine.
        ids: instances of the embedded set.
        home: the folder of caches.
        say: told what takes time.

    Raises:
        ImageBuildError, WorkspaceError, EvaluationError: the check itself could not be made.
    """
    marks = labels("tasks-check")
    by_id = {listed.instance_id: listed for listed in listed_instances() if listed.embedded}
    for instance_id in ids:
        say(f"{instance_id}: image")
        demo.images.ensure_image(client, instance_id, cache=home, say=say)
        source = demo.images.image_name(instance_id)
        instance = load_instance(by_id[instance_id], demo=demo.images.TASK_REPO)
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
        yield TaskCheck(instance_id, judged.gold, judged.empty, before, after, _problems(judged, before, after))


def _problems(judged: Judged, before: frozenset[str], after: frozenset[str]) -> tuple[str, ...]:
    problems = list(judged.problems)
    missing = sorted(set(LEAK_PROBES) - before)
    if missing:
        problems.append(f"leaks that should be there and are not: {', '.join(missing)}")
    if after:
        problems.append(f"leaks that preparation left: {', '.join(sorted(after))}")
    return tuple(problems)


def _leaks(client: docker.DockerClient, image: str, marks: Mapping[str, str]) -> frozenset[str]:
    """The leaks that an image's repository has, by the probes of the task set."""
    kinds = list(LEAK_PROBES)
    scripts = {f"probe{number}.sh": LEAK_PROBES[kind] for number, kind in enumerate(kinds)}
    scripts["all.sh"] = f"cd {WORKDIR}\n" + "".join(
        f"if sh /clawbench/probe{number}.sh >/dev/null 2>&1; then echo found {number}; fi\n"
        for number in range(len(kinds))
    )
    with throwaway(client, image, marks, scripts) as container:
        lines = run_script(container, ["/clawbench/all.sh"])
    return frozenset(kinds[int(line.removeprefix("found "))] for line in lines)
