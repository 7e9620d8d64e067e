"""One case, from its first look at the disk to the removal of its last container, with where its seconds went."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import demo.images
from clawbench.bench import Bench
from clawbench.case import Case
from clawbench.reporting import explanation
from clawbench.settings import Settings
from clawbench.solving import open_attempt
from evaluation.lists import ListedInstance, listed_instances
from gateway.client import Gateway
from records.run import RunDirectory


@dataclass(frozen=True)
class Spent:
    """Where a case's seconds went."""

    claw: float
    """While the claw was at work."""
    suite: float
    """All else, but for the tests that the official harness ran."""
    phases: dict[str, float]
    """The suite's, by phase."""


def new_bench(folder: Path, gateway: Gateway, run_id: str, model: str) -> Bench:
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
        egress="gateway",
        pids_limit=300,
        memory="8g",
    )
    RunDirectory.named(folder, run_id).path.mkdir()
    return Bench(settings, "benchmark", gateway.control)


def the_task() -> ListedInstance:
    """The embedded task that is measured with."""
    return next(one for one in listed_instances() if one.instance_id == demo.images.embedded_ids()[0])


def solve(case: Case) -> Spent:
    """Let the claw work on a case, and have the patch judged.

    Raises:
        WorkspaceError, GatewayError, EvaluationError, ProviderError, NotInstalledError: as every case does.
        RuntimeError: the claw left no patch, so that it was not judged.
    """
    began = time.monotonic()
    case.begin()
    with open_attempt(case) as attempt:
        attempt.run_claw()
        attempt.export()
        case.judge()
    whole = time.monotonic() - began
    case.bench.client.close()
    if "evaluation" not in case.seconds:
        raise RuntimeError(f"{case.claw} left no patch: {explanation(case, case.folder.metadata() or {})}")
    log = (case.folder.path / "evaluation" / "run_instance.log").read_text()
    tests = float(re.findall(r"Test runtime: ([\d_.]+) seconds", log)[-1].replace("_", ""))
    phases = {**case.seconds, "evaluation": case.seconds["evaluation"] - tests}
    claw = phases.pop("agent")
    suite = whole - tests - claw
    return Spent(claw, suite, {**phases, "the rest": suite - sum(phases.values())})
