"""What the results depend on: the manifests of a run and of a case."""

from __future__ import annotations

import inspect
import os
import subprocess
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adapters.base import Adapter
from adapters.prompts import prompt_digest
from adapters.registry import adapter, installed
from adapters.runtimes import default_home
from clawbench import ROOT
from clawbench.run.case import Case
from clawbench.run.environment_marks import Environment, Mark, Marks
from clawbench.run.made_elsewhere import MadeElsewhere
from clawbench.run.runtime_digest import runtime_digest
from clawbench.run.settings import Settings
from common.canonical_json import canonical_digest
from evaluation import harness4
from evaluation.harness import harness_version
from evaluation.harness_client import MEMORY, PIDS
from evaluation.instances import InstanceError
from evaluation.outcomes import Verdict
from evaluation.rows import Taken
from evaluation.sources import digest
from records.journal import now
from records.models import (
    CaseManifest,
    ClawOfCase,
    ClawVersion,
    EvalNetwork,
    Limits,
    RowsSource,
    RunManifest,
    RunSettings,
    SuiteVersion,
)
from workspace.instance_images import described
from workspace.prepare import recipe_digest


def run_manifest(settings: Settings, claws: list[str]) -> RunManifest:
    """The part of the run's manifest that is known before any case begins.

    Raises:
        DamagedRuntimeError: an installed claw is not what was installed.
    """
    facts = {"harness": harness_version(), "dataset_sha256": digest(settings.dataset or "")}
    return RunManifest(
        clawbench=SuiteVersion(version=version("clawbench"), commit=_commit()),
        limits=Limits(
            spend_limit=str(settings.spend_limit) if settings.spend_limit is not None else None,
            samples=settings.samples,
        ),
        settings=RunSettings.model_validate(settings.attributed() | facts),
        claws={name: _claw(name, settings) for name in claws if installed(name)},
    )


def rows_source(taken: Taken, home: Path) -> RowsSource:
    """The manifest's entry about a set's rows.

    Args:
        taken: the rows.
        home: the folder of installed runtimes.

    Raises:
        HarnessMissingError: the rows need an older harness, which is not installed.
        InstanceError: that harness does not know some of the instances.
    """
    harness = harness_version()
    if taken.is_older:
        environment = harness4.find(home)
        if unknown := harness4.unknown(taken.instances, environment):
            raise InstanceError(
                f"{environment.harness} knows neither the repository nor the version of {', '.join(unknown)}"
            )
        harness = environment.harness
    return RowsSource(source=taken.source.name, revision=taken.source.revision, harness=harness)


def _claw(name: str, settings: Settings) -> ClawVersion:
    found = adapter(name)
    runtime = found.runtime()
    if isinstance(found, MadeElsewhere):
        return ClawVersion(version=runtime.version, found_by=runtime.found_by, prompt="", prompt_sha256="")
    prompt = settings.prompt_file(found.prompt_file)
    return ClawVersion(
        version=runtime.version,
        found_by=runtime.found_by,
        runtime_sha256=runtime_digest(found, default_home()),
        adapter_sha256=adapter_digest(found),
        config_sha256=sha256(found.config_file().read_bytes()).hexdigest(),
        prompt=prompt,
        prompt_sha256=prompt_digest(prompt),
    )


def adapter_digest(claw: Adapter) -> str:
    """The digest of an adapter: all files of its package, and the modules that all adapters share.

    An adapter from outside the tree need not be in a package of its own; then it is the file of its module.
    """
    module = Path(inspect.getfile(type(claw)))
    package = module.parent
    own = package.rglob("*") if (package / "__init__.py").exists() else [module]
    shared = Path(inspect.getfile(Adapter)).parent
    files = {
        **{f"adapters/{path.name}": path for path in shared.glob("*.py")},
        **{path.relative_to(package).as_posix(): path for path in own if path.is_file()},
    }
    digests = {
        name: sha256(path.read_bytes()).hexdigest()
        for name, path in files.items()
        if "__pycache__" not in path.parts
    }
    return canonical_digest(digests)


def _commit() -> str | None:
    """The suite's own commit, with `-dirty` if the checkout differs from it; None outside a checkout."""
    if not (ROOT / ".git").exists():
        return None
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ.get("PATH", os.defpath)},
    )
    return done.stdout.strip() or None


def case_manifest(case: Case) -> CaseManifest:
    """Everything that a case's result depends on.

    Raises:
        NotInstalledError: the claw's runtime is missing.
        WorkspaceError, ImageBuildError, EvaluationError, InstanceError: its environment could not be made.
    """
    adapter, instance, prepared = case.adapter, case.instance, case.prepared
    runtime, mark = adapter.runtime(), Marks(case.context.home).find(environment_of(case))
    is_made_elsewhere = case.context.settings.is_made_elsewhere
    return CaseManifest(
        run_id=case.context.settings.run_id,
        written=now(),
        claw=ClawOfCase(name=case.claw, version=runtime.version, found_by=runtime.found_by),
        instance_id=case.id.instance_id,
        sample=case.id.sample,
        repo=instance.repo,
        base_commit=instance.base_commit,
        row_sha256=instance.digest,
        settings=case.context.settings.attributed(),
        prompt="" if is_made_elsewhere else case.prompt_file,
        prompt_template_sha256="" if is_made_elsewhere else prompt_digest(case.prompt_file),
        agent_files=tuple(adapter.agent_files),
        allowed_tools=adapter.allowed_tools,
        model={} if is_made_elsewhere else _model(case),
        source_image=described(case.context.client, prepared.source),
        prepared_image={"tag": prepared.tag, "id": prepared.image_id},
        evaluation_image=prepared.evaluation,
        evaluation={
            "network": _eval_network(case, mark),
            "memory": MEMORY,
            "pids": PIDS,
        },
        history=dict(vars(prepared.proof)) if case.workspace_image == prepared else {},
        engine=case.context.engine,
        harness=case.harness,
        gold=mark.facts() if mark is not None else None,
        clawbench=version("clawbench"),
    )


def _model(case: Case) -> dict[str, Any]:
    served = case.served
    return {"name": served.name, "api": case.api, "context_window": served.context_window}


def _eval_network(case: Case, mark: Mark | None) -> EvalNetwork:
    """Whether the case's tests get a network; see `Settings.eval_network`."""
    chosen = case.context.settings.eval_network
    if chosen != "auto":
        return chosen
    is_proven = mark is not None and mark.judged.gold is Verdict.RESOLVED and mark.judged.network == "none"
    return "none" if case.listed.embedded or is_proven else "open"


def environment_of(case: Case) -> Environment:
    """The environment in which a case is judged. Finds, pulls or builds its image, and prepares it.

    Raises:
        WorkspaceError, ImageBuildError, EvaluationError, InstanceError: it could not be made.
    """
    return Environment(
        instance_id=case.id.instance_id,
        row_sha256=case.instance.digest,
        source_image=case.prepared.source_id,
        preparation=recipe_digest(),
        harness=case.harness,
        architecture=architecture_of(case),
    )


def architecture_of(case: Case) -> str:
    """The platform of its containers: that of `--platform`, which may be emulated, or the engine's architecture."""
    return case.context.settings.platform or str(case.context.engine["architecture"])
