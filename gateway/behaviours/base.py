"""What a behaviour is, and how it gets files into the claw's container: through the claw's shell tool."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import resources

CHUNK = 48 * 1024
"""Characters of base64 per tool call: the kernel allows at most 128 KiB in one argument."""
SCRATCH = "/tmp/scripted-"  # noqa: S108  a path inside the claw's own container
"""Where in the container a behaviour keeps its files: outside the repository."""


class Fault(Enum):
    """How a request fails on purpose."""

    SERVER_ERROR = "server_error"
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate_limited"
    MALFORMED = "malformed"
    DROPPED = "dropped"
    EMPTY = "empty"
    HUNG = "hung"


@dataclass(frozen=True)
class Pace:
    """How fast a reply comes, in seconds."""

    before: float = 0.0
    """Until the first byte."""
    between: float = 0.0
    """Between two chunks of a stream."""


@dataclass(frozen=True)
class Job:
    """What a behaviour knows of its case."""

    case_id: str
    workdir: str
    gold_patch: str
    commands: tuple[str, ...] = ()

    @property
    def scratch(self) -> str:
        """The job's own folder in the container."""
        return SCRATCH + hashlib.sha256(self.case_id.encode()).hexdigest()[:12]

    def parameters(self, *names: str) -> str:
        """Shell assignments for a script: `workdir`, `scratch`, and those given as `name=value`."""
        pairs = [("workdir", self.workdir), ("scratch", self.scratch)]
        pairs += [(name, value) for name, _, value in (item.partition("=") for item in names)]
        return "".join(f"{name}={shlex.quote(value)}\n" for name, value in pairs)


def no_command(job: Job, step: int) -> str | None:  # noqa: ARG001  the shape of Behaviour.command
    """No command: the final text comes at once."""
    return None


def in_order(plan: Callable[[Job], Sequence[str]]) -> Callable[[Job, int], str | None]:
    """Makes `Behaviour.command` run a plan's commands one after the other."""

    def command(job: Job, step: int) -> str | None:
        commands = plan(job)
        return commands[step] if step < len(commands) else None

    return command


@dataclass(frozen=True)
class Behaviour:
    """One way for the scripted model to behave."""

    about: str
    """One line, for help texts."""
    command: Callable[[Job, int], str | None] = no_command
    """The shell command of a step, counted from 0; None when the final text is due."""
    conclude: Callable[[Job, str], str] = lambda _job, _results: "I looked at the issue and changed nothing."
    """The final text, given all tool results. It must begin with a full sentence, or a claw may ask again."""
    pace: Pace = Pace()
    fault: Fault | None = None
    """What requests get instead of a reply."""
    faults: int | None = None
    """How many requests get it, from the first one on; None: all."""
    strays: bool = False
    """Whether it first calls tools that it was not offered: one that does not exist, then all that the filter
    removed."""
    works_first: bool = False
    """Whether the commands are run first, and the fault comes in place of the final text."""


def script(name: str) -> str:
    """The text of a script in `scripts/`."""
    return (resources.files("gateway.behaviours") / "scripts" / name).read_text("utf-8")


def upload(data: bytes, folder: str, name: str) -> list[str]:
    """Commands that write bytes to a file in the container: one per chunk, and one to join and check them.

    Each may be run twice.
    """
    text = base64.b64encode(data).decode()
    quoted = shlex.quote(folder)
    parts = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)] or [""]
    commands = [
        f"mkdir -p {quoted} && printf %s {part} > {quoted}/{name}.{number:05d}.part"
        for number, part in enumerate(parts)
    ]
    commands.append(
        f"cd {quoted} && cat {name}.*.part | base64 -d > {name} && "
        f'test "$(wc -c < {name})" -eq {len(data)} && echo uploaded {len(data)} bytes'
    )
    return commands


def run_script(text: str) -> str:
    """One command that runs a short bash script, from a temporary file so that its standard input stays free."""
    encoded = base64.b64encode(text.encode()).decode()
    if len(encoded) > CHUNK:
        raise ValueError(f"a script of {len(text)} characters does not fit into one command")
    return f't=$(mktemp) && printf %s {encoded} | base64 -d > "$t" && bash "$t"; rm -f "$t"'
