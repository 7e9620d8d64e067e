"""openclaw (npm `openclaw`): a Node agent with its state in one folder, and its sessions in SQLite.

What is particular to it: its documented headless way is `agent exec`, which takes a prompt from a file; it has no
limit of turns, which is why it runs behind a small relay (`openclaw_launch.mjs`) that keeps it to one; it ends at
once on a config key that it does not know; it is large (2 GiB of memory, dozens of threads).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from adapters import configs, openclaw_own, openclaw_session, own
from adapters.base import (
    STATE_DIR,
    CommandResult,
    ContainerArguments,
    NotInstalledError,
    Runtime,
    Shell,
    Task,
    TokenUsage,
)
from adapters.configs import CONFIGS
from adapters.openclaw_config import APIS, TOOLS, read_settings, render_config
from adapters.openclaw_runtime import (
    INSTALL_HINT,
    NODE_VARIABLE,
    VERSION,
    config_of_own,
    find_runtime,
)
from adapters.prompts import prompt_bytes

__all__ = ["CONFIG_FOLDER", "VERSION", "OpenclawAdapter"]

CONFIG_FOLDER = CONFIGS / "openclaw"

_FOLDER = f"{STATE_DIR}/openclaw"
_TEMPLATE = "openclaw.json"
_LAUNCHER = "openclaw_launch.mjs"
_PROMPT = "prompt.txt"
_CHECK_TIMEOUT = 120.0
_OWN_DEADLINE = 2_000_000
"""Seconds: openclaw's own deadline must never be the first, also where the suite's is put off. Its timers count
milliseconds in 31 bits."""


class OpenclawAdapter:
    """openclaw on the protocol of `base.Adapter`."""

    name: ClassVar[str] = "openclaw"
    install_hint: ClassVar[str] = INSTALL_HINT
    prompt_file: ClassVar[str] = "default.txt"
    droppings: ClassVar[tuple[str, ...]] = ()
    allowed_tools: ClassVar[tuple[str, ...] | None] = TOOLS
    min_memory: ClassVar[str] = "2g"
    min_pids: ClassVar[int] = 96
    apis: ClassVar[tuple[str, ...]] = tuple(APIS)
    has_own_config: ClassVar[bool] = True

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`."""
        return find_runtime().runtime()

    def config_file(self) -> Path:
        """See `Adapter.config_file`."""
        found = configs.config_file(CONFIG_FOLDER, _TEMPLATE)
        own = config_of_own()
        return own if own is not None and found == CONFIG_FOLDER / _TEMPLATE else found

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        return ContainerArguments(mounts=find_runtime().mounts())

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`.

        Raises:
            BadOptionError: the config file is not one that this claw can be run with.
            NotInstalledError: the Node does not run openclaw in this container.
            TimeoutError: the container did not answer.
        """
        _check(shell)
        file = self.config_file()
        if task.base_url is None:
            _create_own(shell, task, file)
            return
        settings = read_settings(file, is_whole_config=file == config_of_own())
        config = render_config(settings, task)
        files = {
            "config.json": json.dumps(config, indent=2).encode(),
            _LAUNCHER: Path(__file__).with_name(_LAUNCHER).read_bytes(),
        }
        shell.put(_FOLDER, files)

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        shell.put(_FOLDER, {_PROMPT: prompt_bytes(self.name, task.prompt)})
        found = find_runtime()
        options = ["--message-file", f"{_FOLDER}/{_PROMPT}", "--cwd", task.workdir, "--json"]
        options += ["--state-dir", f"{_FOLDER}/state", "--timeout", str(_OWN_DEADLINE)]
        # without the variable its start makes another state folder, in the image's HOME
        environment = {"LANG": "C.UTF-8", "OPENCLAW_STATE_DIR": f"{_FOLDER}/state"}
        if task.base_url is None:
            # Without the relay, which can't stand before whatever providers a config names: turns have no limit.
            command = [found.node_command, found.entry, "agent", "exec", "--config", f"{_FOLDER}/openclaw.json"]
            environment |= own.credentials()
        else:
            command = [found.node_command, f"{_FOLDER}/{_LAUNCHER}", _FOLDER, found.entry, str(task.max_turns)]
        return shell.run([*command, *options], timeout=task.timeout, environment=environment, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`."""
        shell.fetch(_FOLDER, destination)
        own.leave_out(destination, *openclaw_own.CREDENTIALS)

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:
        """See `Adapter.usage`."""
        return openclaw_session.usage(session, stdout)

    def final_message(self, session: Path, stdout: bytes) -> str:
        """See `Adapter.final_message`."""
        return openclaw_session.final_message(session, stdout)

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def _create_own(shell: Shell, task: Task, file: Path) -> None:
    """What `create_agent` does without the gateway."""
    config = openclaw_own.own_config(file, task)
    own.mark(shell, _FOLDER)
    shell.put(_FOLDER, {"openclaw.json": json.dumps(config, indent=2).encode()})
    store = openclaw_own.own_store()
    # in any case, since openclaw does not make the folder itself
    shell.put(f"{_FOLDER}/state/state", {openclaw_own.STORE.name: store} if store else {".keep": b""}, mode=0o600)


def _check(shell: Shell) -> None:
    """See to it that the Node runs openclaw here (raises NotInstalledError, TimeoutError)."""
    found = find_runtime()
    result = shell.run([found.node_command, found.entry, "--version"], timeout=_CHECK_TIMEOUT)
    if result.timed_out:
        raise TimeoutError(f"openclaw did not answer within {_CHECK_TIMEOUT:.0f} s")
    if result.exit_code != 0:
        said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        raise NotInstalledError(
            f"{found.node} can't run openclaw in the container ({said[-1] if said else 'no output'}). Run "
            f"`clawbench install openclaw`, or let {NODE_VARIABLE} name a Node that needs nothing of its host, as "
            "the one from nodejs.org"
        )
