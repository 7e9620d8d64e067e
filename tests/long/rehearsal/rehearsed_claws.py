"""Five claws of one kind: their program is in the rehearsed engine, and asks the model as real ones do."""

from __future__ import annotations

import json
from pathlib import Path

from adapters.base import (
    STATE_DIR,
    Adapter,
    CommandResult,
    ContainerArguments,
    Runtime,
    Shell,
    Task,
    TokenUsage,
)
from adapters.prompts import prompt_bytes

NAMES = ("amber", "birch", "cedar", "dune", "ember")
PROGRAM = "rehearsed-claw"
TOOL = "shell"


class RehearsedClaw(Adapter):
    """A claw of one tool."""

    install_hint = "nothing: it is part of the rehearsal"
    prompt_file = "default.txt"
    agent_files = ("/rehearsed/",)
    allowed_tools = (TOOL,)
    min_memory = "64m"
    min_pids = 16

    def __init__(self, name: str) -> None:
        """Name the claw."""
        self.name = name  # one class is five claws

    def runtime(self) -> Runtime:
        """It is always there."""
        return Runtime("1.0", Path(__file__), "the rehearsal")

    def config_file(self) -> Path:
        """It has none but its code."""
        return Path(__file__)

    def container_arguments(self) -> ContainerArguments:
        """Nothing is mounted."""
        return ContainerArguments()

    def create_agent(self, shell: Shell, task: Task) -> None:
        """Put the prompt where the program reads it."""
        shell.put(STATE_DIR, {"prompt": prompt_bytes(self.name, task.prompt)})

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """Run the program."""
        return shell.run([PROGRAM, task.model], timeout=task.timeout, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """Copy what the program wrote."""
        shell.fetch(f"{STATE_DIR}/session.json", destination)

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - as the protocol calls it
        """It does not tell."""
        return None

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002
        """The end of its session."""
        messages = json.loads((session / "session.json").read_text())
        return str(messages[-1].get("content", ""))

    def delete_agent(self, shell: Shell) -> None:
        """All of it is in the container."""
