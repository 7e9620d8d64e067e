"""nanobot (PyPI `nanobot-ai`): a Python agent with its state in the folder of its config file.

What is particular to it: it takes a prompt as an argument only (`prompt_launch.py` deals with that); it
exits 0 when the model failed, so its exit code says nothing; it fills the repository's root with files of
its own; after its last allowed round it asks the model once more, without tools, for a closing text; its
shell tool hides the image's environment variables unless they are named in the config.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from adapters import configs, own
from adapters.base import CommandResult, ContainerArguments, Runtime, Shell, Task, TokenUsage
from adapters.configs import CONFIGS
from adapters.nanobot_config import PROVIDERS, own_config, read_settings, render_config
from adapters.python_claw import PythonClaw

VERSION = "0.3.5"
"""The version that `clawbench install nanobot` installs."""

CONFIG_FOLDER = CONFIGS / "nanobot"

_CLAW = PythonClaw(
    name="nanobot",
    version=VERSION,
    package="nanobot",
    distribution="nanobot_ai",
    variable="NANOBOT_ENV_PATH",
    default="/opt/nanobot-env",
    probe=("nanobot", "pydantic_core"),
)
_CONFIG = "config.json"


class NanobotAdapter:
    """nanobot on the protocol of `base.Adapter`."""

    name: ClassVar[str] = "nanobot"
    install_hint: ClassVar[str] = _CLAW.install_hint
    prompt_file: ClassVar[str] = "default.txt"
    droppings: ClassVar[tuple[str, ...]] = (
        "/.nanobot/",
        "/AGENTS.md",
        "/HEARTBEAT.md",
        "/SOUL.md",
        "/USER.md",
        "/cron/jobs.json",
        "/memory/.cursor",
        "/memory/.dream_cursor",
        "/memory/MEMORY.md",
        "/memory/history.jsonl",
        "/prompts/README.md",
    )
    # the others are cron, spawn, message, goals and other sessions
    allowed_tools: ClassVar[tuple[str, ...] | None] = (
        "apply_patch",
        "edit_file",
        "exec",
        "exec_session",
        "find_files",
        "grep",
        "list_dir",
        "list_exec_sessions",
        "read_file",
        "write_file",
    )
    min_memory: ClassVar[str] = "512m"
    min_pids: ClassVar[int] = 64
    apis: ClassVar[tuple[str, ...]] = tuple(PROVIDERS)
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
        variables = sorted(_CLAW.environment(shell))
        if task.base_url is None:
            config = own_config(own.own_file(self.config_file()), task, variables)
            own.mark(shell, _CLAW.folder)
        else:
            config = render_config(read_settings(self.config_file()), task, variables)
        shell.put(_CLAW.folder, {_CONFIG: json.dumps(config, indent=2).encode()})

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        config = f"{_CLAW.folder}/{_CONFIG}"
        options = ["--config", config, "--workspace", task.workdir, "--no-markdown", "--logs"]
        command = _CLAW.with_prompt(shell, task, "nanobot", "--message", ["agent", *options])
        # HOME stays the image's: that is where its toolchains keep what they need without a network
        # (~/.m2, ~/.cargo), and nanobot hands HOME on to its shell tool.
        environment = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        if task.base_url is None:
            environment |= own.credentials()  # a config may name them, as in "${DEEPSEEK_API_KEY}"
        return shell.run(command, timeout=task.timeout, environment=environment, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`."""
        shell.fetch(_CLAW.folder, destination)
        own.leave_out(destination, f"{_CONFIG}*")

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the session
        """See `Adapter.usage`."""
        found = [usage for path in sorted(session.rglob("*.jsonl")) if (usage := _last_usage(path)) is not None]
        return found[0] if len(found) == 1 else None

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - there it is wrapped
        """See `Adapter.final_message`."""
        found = [rows for path in sorted(session.rglob("*.jsonl")) if (rows := _session_rows(path))]
        last = found[0][-1] if len(found) == 1 else {}
        text = last.get("content")
        ended = last.get("role") == "assistant" and not last.get("tool_calls")
        return text if ended and isinstance(text, str) else ""

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def _session_rows(path: Path) -> list[dict[str, Any]]:
    """The messages in a session file; none where it is no session file, or not one that can be read."""
    try:
        first, *rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        is_session = first["_type"] == "metadata"
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return rows if is_session and all(isinstance(row, dict) for row in rows) else []


def _last_usage(path: Path) -> TokenUsage | None:
    """The usage in a session file's first line; None where it has none or is not a session file."""
    with path.open("rb") as stream:
        line = stream.readline(1 << 20)
    try:
        reported = json.loads(line)["metadata"]["_last_usage"]
        total = reported["input_tokens"]
        output = reported["output_tokens"]
        read, write = reported.get("cache_read_tokens"), reported.get("cache_write_tokens")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # the claw, which can write what it likes here, said nothing that can be read
    if not all(isinstance(count, int) for count in (total, output, read or 0, write or 0)):
        return None
    return TokenUsage(input=total - (read or 0) - (write or 0), cache_read=read, cache_write=write, output=output)
