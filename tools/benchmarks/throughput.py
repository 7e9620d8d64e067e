"""Cases an hour with the scripted model, against the floor of the containers that they need.

Both do the ten embedded tasks, on the same machine and with as many agents and evaluations at once. The suite
does it as users do, with pytest and its workers. The floor starts and removes the same containers, runs the claw's
command in the one and the evaluation's script on the claw's patch in the other; it looks for no image, exports
nothing, judges nothing and writes nothing down. The images are there for both.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Semaphore

import docker
from docker.errors import NotFound
from rich.table import Table

from adapters.registry import claws, installed
from clawbench import ROOT
from clawbench.run.agent_run import WorkspaceShell
from clawbench.run.case import Case
from clawbench.run.worker_context import connect
from gateway.client import Gateway
from records.case_folder import CaseFolder
from records.case_id import CaseId
from records.run_folder import RunDirectory
from records.status import seconds
from tools.benchmarks.benchmark_images import MARKS
from tools.benchmarks.one_case import new_bench
from workspace.container import Keep, open_workspace
from workspace.container_files import put_files
from workspace.prepare import WORKDIR

AGENTS = EVALUATIONS = 2
MODEL = "scripted:oracle"


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:  # noqa: ARG001 - threads have their own
    """Measure both; the suite comes first, as the floor runs what its cases left."""
    table = Table(
        f"{AGENTS} agents, {EVALUATIONS} evaluations", "cases", "seconds", "cases an hour", "of the floor"
    )
    table.box = None
    claw = next((name for name in ("nanobot", *claws()) if installed(name)), None)
    if claw is None:
        say("no claw is installed, and nothing was measured")
        return table
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as name:
        folder = Path(name)
        _suite(folder, claw, "warm")
        say(f"{claw}, by the suite")
        whole, run_directory = _suite(folder, claw, "throughput")
        folders = run_directory.cases()
        at_work = _first_to_last(run_directory)
        say(f"{claw}, its containers alone")
        floor = _floor(folder, claw, folders)
    rows = {
        "containers alone": floor,
        "the suite, from the first case's begin to the last one's end": at_work,
        "the suite, with all that is before and after": whole,
    }
    for what, took in rows.items():
        count = len(folders)
        table.add_row(what, str(count), f"{took:.0f}", f"{3600 * count / took:.0f}", f"{floor / took:.0%}")
    return table


def _suite(folder: Path, claw: str, run_id: str) -> tuple[float, RunDirectory]:
    """A run of the embedded set; returns the command's seconds.

    Raises:
        RuntimeError: a case was not resolved.
    """
    words = ["-n", str(AGENTS), f"--eval-slots={EVALUATIONS}", "-m", "demo", "-k", claw, "--model", MODEL]
    places = [f"--artifacts={folder}", f"--run-id={run_id}"]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *places],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    took = time.monotonic() - began
    if done.returncode != 0:
        raise RuntimeError(f"not every case of {claw} was resolved:\n{done.stdout[-3000:]}")
    return took, RunDirectory(folder / run_id)


def _first_to_last(run_directory: RunDirectory) -> float:
    """Seconds from the first case's begin to the last one's end, to a second."""
    times = [seconds(entry.time) for entry in run_directory.journal.read().entries if entry.case is not None]
    return max(1.0, times[-1] - times[0])


def _floor(folder: Path, claw: str, folders: Sequence[CaseFolder]) -> float:
    """Seconds for the containers of all cases and what runs in them."""
    with Gateway.start(folder) as gateway:
        bench = new_bench(folder, gateway, "floor", MODEL)
        cases = [Case(bench, CaseId(claw, one.id.instance_id, one.id.sample)) for one in folders]
        for case in cases:
            case.folder.begin()
            _ = case.prepared, case.instance
        agents, evaluations = Semaphore(AGENTS), Semaphore(EVALUATIONS)

        def one(case: Case, judged: Path) -> None:
            client = connect()  # a thread's own
            with agents:
                _claw_alone(client, case)
            with evaluations:
                _evaluation_alone(client, case, judged)
            client.close()

        began = time.monotonic()
        with ThreadPoolExecutor(AGENTS + EVALUATIONS) as pool:
            list(pool.map(one, cases, (found.path / "evaluation" for found in folders)))
        took = time.monotonic() - began
        bench.client.close()
    return took


def _claw_alone(client: docker.DockerClient, case: Case) -> None:
    """The workspace and its forwarder, with the claw's command in it."""
    bench, arguments = case.context, case.adapter.container_arguments()
    socket = bench.gateway.open_case(case.gateway_spec())
    try:
        with open_workspace(
            client,
            case.prepared,
            name=f"clawbench-benchmark.{case.case_id}",
            labels=MARKS,
            limits=bench.limits,
            gateway_socket=socket,
            mounts={mount.target: str(mount.source) for mount in arguments.mounts},
            environment=arguments.environment,
            keep=Keep(),
        ) as workspace:
            shell = WorkspaceShell(workspace)
            case.adapter.create_agent(shell, case.task)
            result = case.adapter.send_task(shell, case.task)
            if result.exit_code != 0:
                raise RuntimeError(f"{case.case_id}: the claw ended with {result.exit_code}")
    finally:
        case.leave_gateway()


def _evaluation_alone(client: docker.DockerClient, case: Case, judged: Path) -> None:
    """The judge's container, with its script on the patch that the suite's case had."""
    container = client.containers.create(
        case.prepared.evaluation, ["tail", "-f", "/dev/null"], init=True, labels=MARKS, entrypoint=""
    )
    try:
        container.start()
        put_files(container, "/", {"patch.diff": (judged / "patch.diff").read_bytes()})
        put_files(container, "/", {"eval.sh": (judged / "eval.sh").read_bytes()})
        applied = container.exec_run(["git", "apply", "/patch.diff"], workdir=WORKDIR)
        if applied.exit_code != 0:
            raise RuntimeError(f"{case.case_id}: {applied.output!r}")
        container.exec_run(["/bin/bash", "/eval.sh"])
    finally:
        with suppress(NotFound):
            container.remove(force=True)
