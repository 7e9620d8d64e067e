"""nanobot (PyPI `nanobot-ai`): a Python agent with its state in the folder of its config file.

Its peculiarities: it takes a prompt only as an argument (`prompt_launch.py` deals with that); it exits 0 even if
the model failed, so its exit code says nothing; it fills the repository's root with files of its own; after the
last allowed round it asks the model once more, without tools, for a closing text; and its shell tool hides the
image's environment variables unless the config names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from adapters.base import CommandResult, Shell, Task, TokenUsage
from adapters.built_in_adapter import run_claw
from adapters.python_adapter import PythonAdapter, python_hint


class NanobotAdapter(PythonAdapter):
    """nanobot, as `base.Adapter` describes."""

    name: ClassVar[str] = "nanobot"
    version: ClassVar[str] = "0.3.5"
    package: ClassVar[str] = "nanobot"
    distribution: ClassVar[str] = "nanobot_ai"
    variable: ClassVar[str] = "NANOBOT_ENV_PATH"
    default: ClassVar[str] = "/opt/nanobot-env"
    probe: ClassVar[tuple[str, ...]] = ("nanobot", "pydantic_core")
    install_hint: ClassVar[str] = python_hint(name, variable, distribution)
    config_name: ClassVar[str] = "config.json"
    credential_files: ClassVar[tuple[str, ...]] = ("config.json*",)
    agent_files: ClassVar[tuple[str, ...]] = (
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
    # the others are for schedules, subagents, messages, goals and other sessions
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
    apis: ClassVar[tuple[str, ...]] = ("chat", "messages", "responses")

    def files(self, config: Path, task: Task, variables: Mapping[str, str]) -> dict[str, bytes]:
        """See `BuiltInAdapter.files`."""
        from adapters.nanobot.nanobot_config import make_config  # noqa: PLC0415 - imports pydantic

        return {self.config_name: json.dumps(make_config(config, task, sorted(variables)), indent=2).encode()}

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        config = f"{self.folder}/{self.config_name}"
        options = ["--config", config, "--workspace", task.workdir, "--no-markdown", "--logs"]
        command = self.with_prompt(shell, task, "nanobot", "--message", ["agent", *options])
        return run_claw(shell, task, command, {"PYTHONDONTWRITEBYTECODE": "1"})

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


def _session_rows(path: Path) -> list[dict[str, Any]]:
    """The messages in a session file; [] if it is not a readable session file."""
    try:
        first, *rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        is_session = first["_type"] == "metadata"
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return rows if is_session and all(isinstance(row, dict) for row in rows) else []


def _last_usage(path: Path) -> TokenUsage | None:
    """The usage in a session file's first line; None if there is none, or the claw wrote something else there."""
    with path.open("rb") as stream:
        line = stream.readline(1 << 20)
    try:
        reported = json.loads(line)["metadata"]["_last_usage"]
        total = reported["input_tokens"]
        output = reported["output_tokens"]
        read, write = reported.get("cache_read_tokens"), reported.get("cache_write_tokens")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not all(isinstance(count, int) for count in (total, output, read or 0, write or 0)):
        return None
    return TokenUsage(input=total - (read or 0) - (write or 0), cache_read=read, cache_write=write, output=output)
