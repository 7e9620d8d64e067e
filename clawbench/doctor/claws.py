"""Whether the claws' runtimes are there, and their configs can be rendered for this very run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from adapters.base import BadOptionError, CommandResult, NotInstalledError, apis_of
from adapters.registry import CLAWS, adapter
from clawbench.doctor.asked import Asked
from clawbench.doctor.findings import Finding, fault, ok
from clawbench.model_choice import ModelError, check_claws
from clawbench.solving import task_of


class _NoContainer:
    """A shell in which nothing is run: every command succeeds, with an empty environment as its output."""

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
        """Written nowhere."""

    def fetch(self, path: str, destination: Path) -> list[Path]:  # noqa: ARG002
        return []


def check(asked: Asked) -> Iterator[Finding]:
    """Look at each claw."""
    if not asked.claws:
        yield fault("claws", "none is installed", "clawbench install nanobot; `clawbench claws` lists all")
    for name in asked.claws:
        yield _runtime(name)
    for name in asked.installed:
        yield from _config(asked, name)
    if asked.choice is None:
        return
    try:
        check_claws(asked.choice, asked.installed)
    except (ModelError, BadOptionError) as error:
        yield fault("claws", str(error), "leave them out (-k), or take another model")


def _runtime(name: str) -> Finding:
    try:
        runtime = adapter(name).runtime()
    except NotInstalledError as error:
        return fault(name, "its runtime is not here", str(error))
    return ok(name, f"{runtime.version}, by {runtime.found_by}")


def _config(asked: Asked, name: str) -> Iterator[Finding]:
    """Render the config as at the start of a case, into nothing."""
    claw = adapter(name)
    file = claw.config_file()
    try:
        content = file.read_bytes()
        if name in CLAWS:  # what another's adapter makes of a shell that does nothing is not known
            served = asked.settings.endpoint
            api = served.api_for(apis_of(claw))
            claw.create_agent(_NoContainer(), task_of(asked.settings, served, api=api, prompt=""))
    except (BadOptionError, NotInstalledError, OSError) as error:
        yield fault(f"{name}'s config", str(error), f"mend {file}")
        return
    yield ok(f"{name}'s config", f"{file.name}, {len(content)} bytes")
