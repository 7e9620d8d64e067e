"""One case, from its first look at the disk to the removal of its last container, with where its seconds went."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import demo.task_images
from clawbench.pytest_plugin.reporting import explanation
from clawbench.run.agent_run import open_container
from clawbench.run.case import Case
from clawbench.run.settings import Settings
from clawbench.run.worker_context import WorkerContext
from evaluation.lists import ListedInstance, listed_instances
from gateway.client import Gateway
from records.run_folder import RunDirectory


@dataclass(frozen=True)
class Spent:
    """Where a case's seconds went."""

    claw: float
    """While the claw was at work."""
    suite: float
    """All else, but for the tests that the official harness ran."""
    phases: dict[str, float]
    """The suite's, by phase."""


def new_bench(folder: Path, gateway: Gateway, run_id: str, model: str) -> WorkerContext:
    """A run of its own in a folder of runs, with a scripted model."""
    settings = Settings(
        run_id=run_id,
        artifacts=folder,
        model=model,
        agent_timeout=600,
        max_turns=10,
        llm_no=0,
        eval_timeout=600,
        resume=True,
        keep_container="never",
        pids_limit=300,
        memory="8g",
    )
    RunDirectory.named(folder, run_id).path.mkdir()
    return WorkerContext(settings, "benchmark", gateway.control)


def the_task() -> ListedInstance:
    """The embedded task that is measured with."""
    return next(one for one in listed_instances() if one.instance_id == demo.task_images.embedded_ids()[0])


def solve(case: Case) -> Spent:
    """Let the claw work on a case, and have the patch judged.

    Raises:
        WorkspaceError, GatewayError, EvaluationError, ProviderError, NotInstalledError: as every case does.
        RuntimeError: the claw left no patch, so that it was not judged.
    """
    began = time.monotonic()
    case.begin()
    with open_container(case) as container:
        container.run(case.adapter, case.task)
        case.judge(container.export())
    whole = time.monotonic() - began
    case.context.client.close()
    if "evaluation" not in case.seconds:
        record = case.folder.metadata()
        raise RuntimeError(f"{case.claw} left no patch: {explanation(case, record) if record is not None else ''}")
    log = (case.folder.path / "evaluation" / "run_instance.log").read_text()
    tests = float(re.findall(r"Test runtime: ([\d_.]+) seconds", log)[-1].replace("_", ""))
    phases = {**case.seconds, "evaluation": case.seconds["evaluation"] - tests}
    claw = phases.pop("agent")
    suite = whole - tests - claw
    return Spent(claw, suite, {**phases, "the rest": suite - sum(phases.values())})
