"""openclaw (npm `openclaw`): a Node agent with its state in one folder, and its sessions in SQLite.

Its peculiarities: its documented headless command is `agent exec`, which takes a prompt from a file; it has no
limit of turns, so it runs behind a small relay (`openclaw_launch.mjs`) that enforces one; it stops at once at a
config key that it does not know; and it is large (2 GiB of memory, dozens of threads).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from adapters.base import CommandResult, ContainerArguments, Runtime, Shell, Task, TokenUsage
from adapters.built_in_adapter import BuiltInAdapter, require_answer, run_claw
from adapters.openclaw import openclaw_credentials, openclaw_session
from adapters.openclaw.openclaw_runtime import (
    ENTRY,
    INSTALL_HINT,
    NODE_COMMAND,
    NODE_VARIABLE,
    VERSION,
    config_of_own,
    find_runtime,
)
from adapters.prompts import prompt_bytes

TOOLS = ("exec", "process", "read", "write", "edit", "apply_patch")
"""What the model is offered: the shell and the files."""

_LAUNCHER = "openclaw_launch.mjs"
_OWN_DEADLINE = 2_000_000
"""Seconds. openclaw's own deadline must never come first, even if the suite's is extended; its timers count
milliseconds in 31 bits."""


class OpenclawAdapter(BuiltInAdapter):
    """openclaw, as `base.Adapter` describes."""

    name: ClassVar[str] = "openclaw"
    version: ClassVar[str] = VERSION
    install_hint: ClassVar[str] = INSTALL_HINT
    config_name: ClassVar[str] = "openclaw.json"
    credential_files: ClassVar[tuple[str, ...]] = openclaw_credentials.CREDENTIALS
    allowed_tools: ClassVar[tuple[str, ...] | None] = TOOLS
    min_memory: ClassVar[str] = "2g"
    min_pids: ClassVar[int] = 96
    apis: ClassVar[tuple[str, ...]] = ("chat", "responses", "messages")

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`."""
        found = find_runtime()
        return Runtime(found.version, found.module, found.found_by)

    def config_file(self) -> Path:
        """See `Adapter.config_file`; a state folder that a variable names has one too."""
        found = super().config_file()
        return (config_of_own() or found) if found == self.template else found

    def own_config_file(self) -> Path:
        """See `BuiltInAdapter.own_config_file`: without a `.local` file it is the state folder's config."""
        in_state_folder = openclaw_credentials.state_folder() / self.config_name
        is_chosen = ".local" in self.config_file().suffixes
        return in_state_folder if in_state_folder.exists() and not is_chosen else super().own_config_file()

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        return ContainerArguments(mounts=find_runtime().mounts())

    def check(self, shell: Shell, task: Task) -> dict[str, str]:  # noqa: ARG002 - the same for every task
        """See `BuiltInAdapter.check`: its Node must run openclaw."""
        failure = (
            f"{find_runtime().node} can't run openclaw in the container ({{said}}). Run `clawbench install "
            f"openclaw`, or let {NODE_VARIABLE} name a Node that needs nothing of its host, as the one from "
            "nodejs.org"
        )
        require_answer(shell, [NODE_COMMAND, ENTRY, "--version"], failure)
        return {}

    def files(self, config: Path, task: Task, variables: Mapping[str, str]) -> dict[str, bytes]:  # noqa: ARG002
        """See `BuiltInAdapter.files`."""
        from adapters.openclaw import openclaw_config  # noqa: PLC0415 - imports pydantic

        if task.base_url is None:
            own = json.dumps(openclaw_config.own_config(config, task), indent=2).encode()
            store = openclaw_credentials.own_store()
            # the folder is needed in any case, and openclaw does not make it
            stored = {str(openclaw_credentials.STORE): store} if store else {"state/.keep": b""}
            return {self.config_name: own, **{f"state/{name}": content for name, content in stored.items()}}
        rendered = openclaw_config.render_config(config, task, is_whole_config=config == config_of_own())
        launcher = Path(__file__).with_name(_LAUNCHER).read_bytes()
        return {"config.json": json.dumps(rendered, indent=2).encode(), _LAUNCHER: launcher}

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        shell.put(self.folder, {"prompt.txt": prompt_bytes(self.name, task.prompt)})
        options = ["--message-file", f"{self.folder}/prompt.txt", "--cwd", task.workdir, "--json"]
        options += ["--state-dir", f"{self.folder}/state", "--timeout", str(_OWN_DEADLINE)]
        if task.base_url is None:
            # The relay can't be put in front of whatever providers a config names, so turns have no limit.
            command = [NODE_COMMAND, ENTRY, "agent", "exec", "--config", f"{self.folder}/{self.config_name}"]
        else:
            command = [NODE_COMMAND, f"{self.folder}/{_LAUNCHER}", self.folder, ENTRY, str(task.max_turns)]
        # without the variable, openclaw makes another state folder when it starts, in the image's HOME
        return run_claw(shell, task, [*command, *options], {"OPENCLAW_STATE_DIR": f"{self.folder}/state"})

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:
        """See `Adapter.usage`."""
        return openclaw_session.usage(session, stdout)

    def final_message(self, session: Path, stdout: bytes) -> str:
        """See `Adapter.final_message`."""
        return openclaw_session.final_message(session, stdout)
