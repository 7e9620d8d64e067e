"""The suite's own seconds per case, with a claw that takes none, against the floor of the containers it needs.

What a case needs: a workspace, a forwarder and an evaluation, each created, started and removed, and one
container that is created and removed only (it shows the workspace's layer). The claw's and the tests' own time
are taken off; all else of a case counts, from its first look at the disk to the removal of its last container.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import ClassVar

import docker
from rich.table import Table

from adapters.base import CommandResult, ContainerArguments, Runtime, Shell, Task, TokenUsage
from adapters.registry import adapter
from clawbench.run.case import Case
from gateway.client import Gateway
from records.case_id import CaseId
from tools.benchmarks.benchmark_images import MARKS, base_image
from tools.benchmarks.one_case import Spent, new_bench, solve, the_task

ROUNDS = 7


class InstantClaw:
    """A claw that makes one edit and ends."""

    name: ClassVar[str] = "nanobot"
    install_hint: ClassVar[str] = ""
    prompt_file: ClassVar[str] = "default.txt"
    agent_files: ClassVar[tuple[str, ...]] = ()
    allowed_tools: ClassVar[tuple[str, ...] | None] = None
    min_memory: ClassVar[str] = "64m"
    min_pids: ClassVar[int] = 16
    apis: ClassVar[tuple[str, ...]] = ("chat",)
    has_own_config: ClassVar[bool] = False

    def runtime(self) -> Runtime:
        """It has none."""
        return Runtime("0", Path("/"), "benchmark")

    def config_file(self) -> Path:
        """Any file: nothing reads it."""
        return adapter("nanobot").config_file()

    def container_arguments(self) -> ContainerArguments:
        """It needs nothing."""
        return ContainerArguments()

    def create_agent(self, shell: Shell, task: Task) -> None:
        """There is nothing to create."""

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """Edit one file."""
        return shell.run(["sh", "-c", "echo >> README.md"], timeout=task.timeout)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """There is no session."""

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:
        """It used nothing."""

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - the protocol's shape
        """It says nothing."""
        return ""

    def delete_agent(self, shell: Shell) -> None:
        """There is nothing to delete."""


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure a case and its floor in turn."""
    image = base_image(client, say)
    cases, floors, phases = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as folder,
        Gateway.start(Path(folder)) as gateway,
    ):
        _case(Path(folder), gateway, "warm")
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}")
            floors.append(_floor(client, image))
            spent = _case(Path(folder), gateway, f"round{number}")
            cases.append(spent.suite)
            phases.append(spent.phases)
    table = Table("one case with an instant claw", "median seconds", "times the floor", box=None)
    table.add_row("bare containers: 3 started, 1 created", f"{median(floors):.2f}", "1")
    ratio = median(case / floor for case, floor in zip(cases, floors, strict=True))
    table.add_row("the suite's own share of a case", f"{median(cases):.2f}", f"{ratio:.2f} (target: at most 2)")
    for name in phases[0]:
        table.add_row(f"  of it {name}", f"{median(spent[name] for spent in phases):.2f}", "")
    return table


def _floor(client: docker.DockerClient, image: str) -> float:
    began = time.monotonic()
    for started in (True, True, True, False):
        container = client.containers.create(image, ["sleep", "600"], init=True, network_mode="none", labels=MARKS)
        if started:
            container.start()
        container.remove(force=True)
    return time.monotonic() - began


def _case(folder: Path, gateway: Gateway, run_id: str) -> Spent:
    case = Case(new_bench(folder, gateway, run_id, "scripted:noop"), CaseId("nanobot", the_task().instance_id))
    case.adapter = InstantClaw()
    return solve(case)
