"""hermes (PyPI `hermes-agent`): a Python agent with all its state in one folder, `HERMES_HOME`.

Its peculiarities: it takes a prompt only as an argument (`prompt_launch.py` deals with that); it offers the model
only the toolsets that it is given, which leaves out web, memory, delegation and schedules; its terminal tool
starts a login shell, whose profile files would undo the image's PATH; and after the last allowed round it asks the
model once more, without tools, for a closing text.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from adapters.base import CommandResult, Shell, Task, TokenUsage
from adapters.built_in_adapter import query_database, run_claw
from adapters.python_adapter import PythonAdapter, python_hint

TOOLSETS = ("terminal", "file")
"""terminal, process; read_file, write_file, patch, search_files."""

_SHELL_INIT = "shell_init.sh"
_DATABASE = "state.db"
_COLUMNS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


class HermesAdapter(PythonAdapter):
    """hermes, as `base.Adapter` describes."""

    name: ClassVar[str] = "hermes"
    version: ClassVar[str] = "0.19.0"
    package: ClassVar[str] = "hermes_cli"
    distribution: ClassVar[str] = "hermes_agent"
    variable: ClassVar[str] = "HERMES_ENV_PATH"
    default: ClassVar[str] = "/opt/hermes-env"
    probe: ClassVar[tuple[str, ...]] = ("hermes_cli", "pydantic_core", "cryptography", "ruamel.yaml")
    install_hint: ClassVar[str] = python_hint(name, variable, distribution)
    config_name: ClassVar[str] = "config.yaml"
    credential_files: ClassVar[tuple[str, ...]] = ("config.yaml*", ".env", "auth.json")
    # what `TOOLSETS` offers, declared so that another version's additions stay out
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
    apis: ClassVar[tuple[str, ...]] = ("chat", "responses", "messages")

    def modules_for(self, task: Task) -> tuple[str, ...]:
        """See `PythonAdapter.modules_for`."""
        return (*self.probe, "anthropic") if task.api == "messages" else self.probe

    def files(self, config: Path, task: Task, variables: Mapping[str, str]) -> dict[str, bytes]:
        """See `BuiltInAdapter.files`."""
        from adapters.hermes.hermes_config import make_config  # noqa: PLC0415 - imports pydantic

        # The first file restores what the login shell's profile and hermes itself take away; the others are those
        # that hermes sources by default.
        init_files = [f"{self.folder}/{_SHELL_INIT}", "~/.profile", "~/.bash_profile", "~/.bashrc"]
        return {
            self.config_name: make_config(config, task, init_files),
            _SHELL_INIT: _shell_init(variables).encode(),
        }

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        options = ["--quiet", "--yolo", "--max-turns", str(task.max_turns), "--toolsets", ",".join(TOOLSETS)]
        arguments = ["chat", *options, *(["--model", task.model] if task.model else [])]
        command = self.with_prompt(shell, task, "hermes_cli.main", "--query", arguments)
        return run_claw(shell, task, command, {"HERMES_HOME": self.folder, "PYTHONDONTWRITEBYTECODE": "1"})

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the session
        """See `Adapter.usage`."""
        sums = ", ".join(f"sum({column})" for column in _COLUMNS)
        # over all sessions: a compressed one continues in a new row
        query = f"SELECT {sums}, sum(api_call_count) FROM sessions"  # noqa: S608 - our own names
        for row in query_database(session, _DATABASE, query):
            if all(isinstance(count, int) for count in row) and row[-1]:
                return TokenUsage(*row[:4])
        return None

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - warnings may be in it
        """See `Adapter.final_message`."""
        query = "SELECT role, tool_calls, content FROM messages ORDER BY id DESC LIMIT 1"
        match query_database(session, _DATABASE, query):
            case [("assistant", None | "" | "[]", str(text))]:
                return text
        return ""


def _shell_init(variables: Mapping[str, str]) -> str:
    """A script that restores the image's own environment in the terminal tool's shell."""
    lost = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
    return "".join(f"export {name}={shlex.quote(variables[name])}\n" for name in lost if name in variables)
