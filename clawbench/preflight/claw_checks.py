"""Whether the claws' runtimes are what was installed and start, and their configs can be rendered for this very run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from adapters.base import BadOptionError, CommandResult, NoAnswerError, NotInstalledError, apis_of
from adapters.registry import CLAWS, adapter
from adapters.runtimes import default_home
from clawbench.preflight.engine_checks import Engine
from clawbench.preflight.findings import Finding, fault, ok, warning
from clawbench.preflight.instance_checks import image_here
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.agent_run import WorkspaceShell
from clawbench.run.case import task_of
from clawbench.run.model_choice import ModelError, check_claws
from clawbench.run.runtime_digest import DamagedRuntimeError, runtime_digest
from workspace.container import Keep, Limits, open_workspace
from workspace.owner import labels
from workspace.workspace_errors import WorkspaceError


class _NoContainer:
    """A shell that runs nothing: every command succeeds, with an empty environment as its output."""

    def run(
        self,
        command: Sequence[str],  # noqa: ARG002 - the protocol's
        *,
        timeout: float,  # noqa: ARG002
        environment: Mapping[str, str] | None = None,  # noqa: ARG002
        workdir: str | None = None,  # noqa: ARG002
    ) -> CommandResult:
        return CommandResult(0, b"{}\n", b"", 0.0)

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        pass

    def fetch(self, path: str, destination: Path) -> list[Path]:  # noqa: ARG002
        return []


def check(run: PlannedRun) -> Iterator[Finding]:
    """Check each claw."""
    if not run.claws:
        yield fault("claws", "none is installed", "clawbench install nanobot; `clawbench claws` lists all")
    for name in run.claws:
        try:
            runtime = adapter(name).runtime()
            digest = runtime_digest(adapter(name), default_home(), whole=True)
            yield ok(name, f"{runtime.version}, by {runtime.found_by}, sha256:{digest[:12]}")
        except NotInstalledError as error:
            yield fault(name, "its runtime is not installed", str(error))
        except DamagedRuntimeError as error:
            yield fault(name, "its runtime is damaged", str(error))
    for name in run.installed:
        yield _config(run, name)
    if run.choice is None:
        return
    try:
        check_claws(run.choice, run.installed)
    except (ModelError, BadOptionError) as error:
        yield fault("claws", str(error), "leave them out (--claw, -k), or choose another model")


def starts(run: PlannedRun, engine: Engine) -> Iterator[Finding]:
    """Start each claw once in a container, as a case does before its claw works: with its mounts and limits, no network.

    It needs one of the instances' images. If none is there yet, the first case of each claw starts it.
    """
    image = image_here(run, engine)
    if image is None:
        if run.installed:
            found = "no claw was started: none of the instances' images is here yet"
            yield warning("start", found, "the first case of each claw starts it")
        return
    for name in run.installed:
        yield _start(run, engine, name, image)


def _start(run: PlannedRun, engine: Engine, name: str, image: str) -> Finding:
    claw, settings = adapter(name), run.settings
    served = settings.endpoint
    began = time.monotonic()
    try:
        arguments = claw.container_arguments()
        with open_workspace(
            engine.client,
            _Image(image, settings.platform),
            name=f"clawbench-start.{name}.{token_hex(4)}",
            labels=labels(settings.run_id),
            limits=Limits(settings.pids_limit, settings.memory),
            gateway_socket=None,
            mounts={mount.target: str(mount.source) for mount in arguments.mounts},
            environment=arguments.environment,
            keep=Keep(),
        ) as workspace:
            task = task_of(settings, served, api=served.api_for(apis_of(claw)), prompt="")
            claw.create_agent(WorkspaceShell(workspace), task)
    except BadOptionError as error:
        return fault(f"{name}'s start", str(error), f"fix {claw.config_file()}")
    except (NotInstalledError, NoAnswerError, WorkspaceError) as error:
        return fault(f"{name}'s start", str(error), claw.install_hint)
    return ok(f"{name}'s start", f"it starts in {image} ({time.monotonic() - began:.1f} s)")


@dataclass(frozen=True)
class _Image:
    """An image that is here."""

    image_id: str
    platform: str | None


def _config(run: PlannedRun, name: str) -> Finding:
    """Render the config as at the start of a case, and discard it."""
    claw = adapter(name)
    file = claw.config_file()
    try:
        content = file.read_bytes()
        if name in CLAWS:  # another's adapter may need more than a shell that does nothing
            served = run.settings.endpoint
            task = task_of(run.settings, served, api=served.api_for(apis_of(claw)), prompt="")
            claw.create_agent(_NoContainer(), task)
    except (BadOptionError, NotInstalledError, OSError) as error:
        return fault(f"{name}'s config", str(error), f"fix {file}")
    return ok(f"{name}'s config", f"{file.name}, {len(content)} bytes")
