"""hermes (PyPI `hermes-agent`): a Python agent with all its state in one folder, `HERMES_HOME`.

What is particular to it: it takes a prompt as an argument only (`prompt_launch.py` deals with that); only the
toolsets that it is told of are offered to the model, which leaves out web, memory, delegation and schedules by its
own means; its terminal tool starts a login shell, whose profile files would undo the image's PATH; after its last
allowed round it asks the model once more, without tools, for a closing text.
"""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import yaml

from adapters import configs, own
from adapters.base import CommandResult, ContainerArguments, Runtime, Shell, Task, TokenUsage
from adapters.configs import CONFIGS
from adapters.hermes_config import API_MODES, own_config, read_settings, render_config
from adapters.python_claw import PythonClaw

VERSION = "0.19.0"
"""The version that `clawbench install hermes` installs."""

CONFIG_FOLDER = CONFIGS / "hermes"
TOOLSETS = ("terminal", "file")
"""terminal, process; read_file, write_file, patch, search_files."""

_CLAW = PythonClaw(
    name="hermes",
    version=VERSION,
    package="hermes_cli",
    distribution="hermes_agent",
    variable="HERMES_ENV_PATH",
    default="/opt/hermes-env",
    probe=("hermes_cli", "pydantic_core", "cryptography", "ruamel.yaml"),
)
_CONFIG = "config.yaml"
_SHELL_INIT = "shell_init.sh"
_DATABASE = "state.db"
_COLUMNS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


class HermesAdapter:
    """hermes on the protocol of `base.Adapter`."""

    name: ClassVar[str] = "hermes"
    install_hint: ClassVar[str] = _CLAW.install_hint
    prompt_file: ClassVar[str] = "default.txt"
    droppings: ClassVar[tuple[str, ...]] = ()
    # what `TOOLSETS` leaves, declared so that another version's additions stay out
    allowed_tools: ClassVar[tuple[str, ...] | None] = (
        "patch",
        "process",
        "read_file",
        "search_files",
        "terminal",
        "write_file",
    )
    min_memory: ClassVar[str] = "512m"
    min_pids: ClassVar[int] = 64
    apis: ClassVar[tuple[str, ...]] = tuple(API_MODES)
    has_own_config: ClassVar[bool] = True

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`."""
        return _CLAW.runtime()

    def config_file(self) -> Path:
        """See `Adapter.config_file`."""
        return configs.config_file(CONFIG_FOLDER, _CONFIG)

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        return ContainerArguments(mounts=_CLAW.mounts())

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`.

        Raises:
            BadOptionError: the config file is not one that this claw can be run with.
            NotInstalledError: the container's Python can't import the runtime.
            TimeoutError: the container did not answer.
        """
        claw = replace(_CLAW, probe=(*_CLAW.probe, "anthropic")) if task.api == "messages" else _CLAW
        variables = claw.environment(shell)
        # The first file brings back what the login shell's profile and hermes itself take away; the others are
        # those that hermes sources if it is told of none.
        init_files = [f"{_CLAW.folder}/{_SHELL_INIT}", "~/.profile", "~/.bash_profile", "~/.bashrc"]
        if task.base_url is None:
            config = own_config(own.own_file(self.config_file()), task, init_files)
            own.mark(shell, _CLAW.folder)
        else:
            config = render_config(read_settings(self.config_file()), task, init_files)
        files = {
            _CONFIG: yaml.safe_dump(config, sort_keys=False).encode(),
            _SHELL_INIT: _shell_init(variables).encode(),
        }
        shell.put(_CLAW.folder, files)

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        options = ["--quiet", "--yolo", "--max-turns", str(task.max_turns), "--toolsets", ",".join(TOOLSETS)]
        arguments = ["chat", *options, *(["--model", task.model] if task.model else [])]
        command = _CLAW.with_prompt(shell, task, "hermes_cli.main", "--query", arguments)
        environment = {"HERMES_HOME": _CLAW.folder, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        if task.base_url is None:
            environment |= own.credentials()
        return shell.run(command, timeout=task.timeout, environment=environment, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`."""
        shell.fetch(_CLAW.folder, destination)
        own.leave_out(destination, f"{_CONFIG}*", ".env", "auth.json")

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the session
        """See `Adapter.usage`."""
        sums = ", ".join(f"sum({column})" for column in _COLUMNS)
        # over all sessions: a compressed one goes on in a new row
        row = _ask(session, f"SELECT {sums}, sum(api_call_count) FROM sessions")  # noqa: S608 - our names
        if not row or not all(isinstance(count, int) for count in row) or not row[-1]:
            return None
        return TokenUsage(*row[:4])

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - warnings may be in it
        """See `Adapter.final_message`."""
        row = _ask(session, "SELECT role, tool_calls, content FROM messages ORDER BY id DESC LIMIT 1")
        match row:
            case ("assistant", None | "" | "[]", str(text)):
                return text
        return ""

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def _shell_init(variables: Mapping[str, str]) -> str:
    """What gives the terminal tool's shell the image's own environment again."""
    lost = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
    return "".join(f"export {name}={shlex.quote(variables[name])}\n" for name in lost if name in variables)


def _ask(session: Path, query: str) -> tuple[Any, ...]:
    """The first row that the session's database answers with; () where there is none, or no such database.

    The files are copied first, because SQLite would change them: what the claw wrote last is in the write-ahead
    log beside the database.
    """
    found = sorted(session.rglob(_DATABASE))
    if len(found) != 1:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        for path in found[0].parent.glob(f"{_DATABASE}*"):
            shutil.copyfile(path, Path(folder, path.name))
        try:
            with closing(sqlite3.connect(Path(folder, _DATABASE))) as connection:
                row: tuple[Any, ...] | None = connection.execute(query).fetchone()
        except sqlite3.Error:
            return ()  # the claw, which can write what it likes here, said nothing that can be read
    return row or ()
