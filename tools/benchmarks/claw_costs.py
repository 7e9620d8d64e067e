"""What each installed claw costs for the same two-turn task: one shell command, then a closing text.

The model is scripted and answers at once, so that the seconds are the claw's own. What the claw's container used
is read from its cgroups on the host. The suite's own share is all of a case's seconds but for the claw's and for
the tests of the official harness.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, cast

import docker
from rich.table import Table

from adapters.base import Adapter, CommandResult, Shell, Task
from adapters.registry import adapter, claws, installed
from clawbench.run.case import Case
from clawbench.run.worker_context import WorkerContext
from gateway.case_models import CaseSpec
from gateway.client import Gateway
from records.case_id import CaseId
from tools.benchmarks.meter import Meter
from tools.benchmarks.one_case import Spent, new_bench, solve, the_task

ROUNDS = 3
COMMAND = "echo measured >> README.md"
"""What the model has the claw run in the repository."""
TURNS = 2


class _Metered:
    """An adapter that tells what the claw's container used; all else is the claw's own."""

    def __init__(self, case: Case) -> None:
        self._claw = adapter(case.claw)
        self._case = case
        self.meter: Meter | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._claw, name)

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        self.meter = Meter(self._container())
        try:
            return self._claw.send_task(shell, task)
        finally:
            self.meter.stop()

    def _container(self) -> Any:
        marks: dict[str, Any] = {"label": [f"{name}={value}" for name, value in self._case.labels.items()]}
        found = self._case.context.client.containers.list(filters=marks, ignore_removed=True)
        return next(one for one in found if not str(one.name).endswith("-forwarder"))


class _TwoTurns(Case):
    """A case whose model has one command run."""

    def __init__(self, bench: WorkerContext, claw: str) -> None:
        super().__init__(bench, CaseId(claw, the_task().instance_id))
        self.metered = _Metered(self)
        self.adapter = cast(Adapter, self.metered)

    def gateway_spec(self) -> CaseSpec:
        return super().gateway_spec().model_copy(update={"commands": (COMMAND,)})


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:  # noqa: ARG001 - all benchmarks' shape
    """Measure every installed claw, one after the other; the first case of each is not counted."""
    table = Table(
        *("two turns of each claw", "version", "s", "CPU s", "peak MiB", "peak pids"),
        *("the suite's own s", "its share"),
        box=None,
    )
    with (
        tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as folder,
        Gateway.start(Path(folder)) as gateway,
    ):
        for claw in claws():
            if not installed(claw):
                say(f"{claw} is not installed, and left out")
                continue
            say(f"{claw}: {ROUNDS + 1} cases")
            _one(Path(folder), gateway, claw, "warm")
            table.add_row(*_row(claw, [_one(Path(folder), gateway, claw, str(n)) for n in range(ROUNDS)]))
    return table


def _one(folder: Path, gateway: Gateway, claw: str, name: str) -> tuple[Spent, Meter]:
    case = _TwoTurns(new_bench(folder, gateway, f"{claw}-{name}", "scripted:commands"), claw)
    spent = solve(case)
    export = case.folder.export()
    turns = export.turns if export is not None else 0
    if case.metered.meter is None or turns != TURNS:
        raise RuntimeError(f"{claw} took {turns} turns for a task of {TURNS}")
    return spent, case.metered.meter


def _row(claw: str, rounds: list[tuple[Spent, Meter]]) -> list[str]:
    spent, meters = [one for one, _ in rounds], [one for _, one in rounds]
    seconds, suite = median(one.claw for one in spent), median(one.suite for one in spent)
    return [
        claw,
        adapter(claw).runtime().version,
        f"{seconds:.1f}",
        f"{median(one.cpu_seconds for one in meters):.1f}",
        f"{max(one.peak_memory for one in meters) / 2**20:.0f}",
        f"{max(one.peak_pids for one in meters)}",
        f"{suite:.1f}",
        f"{median(one.suite / (one.suite + one.claw) for one in spent):.0%}",
    ]
