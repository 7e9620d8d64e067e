"""The official harness on an instance's own fix, and on no change: the one must resolve it, the other must not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import docker

from evaluation.harness import judge
from evaluation.instances import Instance
from evaluation.judgement import Judgement
from evaluation.outcomes import Verdict
from workspace.running import ended_from_within

_SHOWN = 3


@dataclass(frozen=True)
class Judged:
    """What the harness said."""

    gold: Verdict
    empty: Verdict = Verdict.NOT_JUDGED
    """`not_judged`: it was not asked."""
    failing_tests: tuple[str, ...] = ()
    """Those that did not pass with the gold patch."""
    detail: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """What shows that the environment is broken; nothing where it is sound, as far as it was asked."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[str]:
        if self.gold is not Verdict.RESOLVED:
            tests = ", ".join(self.failing_tests[:_SHOWN])
            more = f" and {len(self.failing_tests) - _SHOWN} more" if len(self.failing_tests) > _SHOWN else ""
            why = f" ({tests}{more})" if tests else f" ({self.detail})" if self.detail else ""
            yield f"the gold patch is {self.gold}{why}"
        # git refuses an empty patch, and an image without GNU patch has nothing else to apply it with: all the
        # same it did not resolve
        if self.empty is Verdict.RESOLVED:
            yield f"an empty patch is {self.empty}"


def judge_both(
    instance: Instance,
    *,
    client: docker.DockerClient,
    image: str,
    timeout: float,
    folder: Path,
    labels: Mapping[str, str],
    home: Path,
    empty: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Judged:
    """Let the harness judge the gold patch, then the empty one.

    Args:
        instance: the row.
        client: the engine.
        image: what cases of it are judged in.
        timeout: seconds for the tests of each.
        folder: takes the harness's logs, below `gold` and `empty`.
        labels: for the containers.
        home: the folder of installed runtimes.
        empty: whether the empty patch is judged at all, which takes as long again.
        say: told what is under way.

    Raises:
        EvaluationError: there was no verdict, which says nothing of the instance.
    """

    def of(patch: str, name: str) -> Judgement:
        say(f"the official harness judges the {name} patch")
        return judge(
            instance,
            patch,
            client=client,
            image=image,
            model_name=name,
            timeout=timeout,
            folder=folder / name,
            labels=labels,
            ended_from_within=partial(ended_from_within, client),
            home=home,
        )

    gold = of(instance.patch, "gold")
    nothing = of("", "empty").verdict if empty else Verdict.NOT_JUDGED
    return Judged(gold.verdict, nothing, gold.failing_tests, gold.detail)
