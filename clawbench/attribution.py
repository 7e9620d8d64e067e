"""What a case's number is attributed to: its manifest, and the environment that it is judged in."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from adapters.prompts import prompt_digest
from clawbench.case import Case
from clawbench.gold.marks import Environment, Marks
from records.journal import now
from workspace.images import described
from workspace.prepare import recipe_digest


def manifest_of(case: Case) -> dict[str, Any]:
    """Everything that a case's number is attributed to.

    Raises:
        NotInstalledError: the claw's runtime is not there.
        WorkspaceError, ImageBuildError, EvaluationError, InstanceError: its environment can't be had.
    """
    adapter, instance, prepared, served = case.adapter, case.instance, case.prepared, case.served
    runtime, mark = adapter.runtime(), Marks(case.bench.home).find(environment_of(case))
    return {
        "run_id": case.bench.settings.run_id,
        "written": now(),
        "claw": {"name": case.claw, "version": runtime.version, "found_by": runtime.found_by},
        "instance_id": case.listed.instance_id,
        "sample": case.sample,
        "repo": instance.repo,
        "base_commit": instance.base_commit,
        "row_sha256": instance.digest,
        "settings": case.bench.settings.attributed(),
        "prompt": case.prompt_file,
        "prompt_template_sha256": prompt_digest(case.prompt_file),
        "droppings": list(adapter.droppings),
        "allowed_tools": adapter.allowed_tools,
        "model": {"name": served.name, "api": case.api, "context_window": served.context_window},
        "source_image": described(case.bench.client, prepared.source),
        "prepared_image": {"tag": prepared.tag, "id": prepared.image_id},
        "evaluation_image": prepared.evaluation,
        "history": vars(prepared.proof),
        "engine": case.bench.engine,
        "harness": case.harness,
        "gold": mark.facts() if mark is not None else None,
        "clawbench": version("clawbench"),
    }


def environment_of(case: Case) -> Environment:
    """What a case is judged in, for which its image is found, pulled or built, and prepared.

    Raises:
        WorkspaceError, ImageBuildError, EvaluationError, InstanceError: it can't be had.
    """
    return Environment(
        instance_id=case.listed.instance_id,
        row_sha256=case.instance.digest,
        source_image=case.prepared.source_id,
        preparation=recipe_digest(),
        harness=case.harness,
        architecture=architecture_of(case),
    )


def architecture_of(case: Case) -> str:
    """What its containers run on: the platform that is asked for, which may be emulated, else the engine's own."""
    return case.bench.settings.platform or str(case.bench.engine["architecture"])
