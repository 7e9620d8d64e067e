"""Whether the claws' runtimes are installed, and their configs can be rendered for this very run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from adapters.base import BadOptionError, CommandResult, NotInstalledError, apis_of
from adapters.registry import CLAWS, adapter
from clawbench.preflight.findings import Finding, fault, ok
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.case import task_of
from clawbench.run.model_choice import ModelError, check_claws


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
            yield ok(name, f"{runtime.version}, by {runtime.found_by}")
        except NotInstalledError as error:
            yield fault(name, "its runtime is not installed", str(error))
    for name in run.installed:
        yield _config(run, name)
    if run.choice is None:
        return
    try:
        check_claws(run.choice, run.installed)
    except (ModelError, BadOptionError) as error:
        yield fault("claws", str(error), "leave them out (--claw, -k), or choose another model")


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
