"""The cases that the conformance suite runs for each claw, with their prompts, and which of them run together."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gateway.behaviours.base import run_script
from tests_bench.conformance.edit_repository import EDITS, edit_command
from tests_bench.conformance.watched_adapter import PROCESSES
from workspace.prepare import WORKDIR

AMPLE = 900.0
"""Seconds of a time limit that is not reached."""
TURNS = 4
"""The limit of turns in the run that must reach it."""
FAULTS = {
    "unauthorized": "401",
    "limited": "429 with Retry-After",
    "broken": "500",
    "dropped": "a dropped connection",
    "garbage": "a malformed stream",
    "empty": "an empty answer",
}
"""Behaviours of a provider that keeps failing, each with what it answers."""
EDIT = ("conformance-edit.txt", "edited before the end\n")
"""A file that a run makes before anything fails, and its content."""

_EDIT = f"cd {WORKDIR} && printf '{EDIT[1].strip()}\\n' > {EDIT[0]}"
_HIDE = (
    "mkdir /root/hidden; for name in python3 python python3.11 python3.12 node nodejs npm git pip pip3; do "
    'while at=$(command -v "$name"); do mv "$at" "/root/hidden/$name.$(ls /root/hidden | wc -l)" || exit 1; '
    "done; done"
)


_PLANES = [
    (0x20, 0x7E),
    (0xA1, 0x7FF),
    (0x800, 0xD7FF),
    (0xE000, 0xFFFF),
    *((plane << 16, (plane << 16) | 0xFFFF) for plane in range(1, 17)),
]
_HEAD = (
    "--help -c /etc/passwd\n$(touch /testbed/pwned) `id` ${HOME} \"'\\\\ \\n\n"
    "\r\n\t\x01\x7f%s {{issue}} [bold]x[/] @file:/etc/passwd\n"
)
_TAIL = "| \n"


@dataclass(frozen=True)
class Run:
    """One case."""

    name: str
    model: str
    commands: tuple[str, ...] = ()
    prompt_size: int = 2000
    """Bytes."""
    prompt_end: str = ""
    """Text behind these bytes."""
    max_turns: int = 40
    is_short: bool = False
    """Whether its time limit is short: a multiple of what the claw takes for a plain task."""
    before: str = ""
    """A shell command that changes the container before the claw is set up."""
    is_inspected: bool = False
    """Whether the container is searched after the claw has ended."""
    has_edits_repository: bool = False
    about: str = ""
    """What distinguishes it from other runs of its kind, in words."""

    @property
    def token(self) -> str:
        """A word that occurs only in this run's prompt and commands."""
        return f"token-of-{self.name}-run"

    @property
    def prompt(self) -> str:
        """A prompt that is hard to pass on."""
        return hard_prompt(self.prompt_size, self.token) + self.prompt_end


def hard_prompt(size: int, token: str) -> str:
    """A text with a leading dash, quotes, substitutions, odd line ends and every Unicode plane.

    It ends with blanks, so that a claw that strips them is noticed.

    Args:
        size: its size in UTF-8, in bytes; at least a few hundred.
        token: words that it contains.
    """
    rng = random.Random(size)  # noqa: S311 - the same text each time
    text = f"{_HEAD}{token}\n"
    parts = [text]
    length = len(text.encode())
    while length < size - 80:
        part = "".join(chr(rng.randint(*rng.choice(_PLANES))) for _ in range(16))
        parts.append(part)
        length += len(part.encode())
    return "".join(parts) + "x" * (size - length - len(_TAIL)) + _TAIL


def _mark(name: str) -> str:
    """A command that leaves a run's token where another run would find it, and records the processes."""
    text = f"echo token-of-{name}-run | tee /tmp/token-of-run; cat /tmp/token-of-run; sleep 2\n"
    text += f"cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > {PROCESSES} 2>/dev/null; true"
    return run_script(text)


PLAIN = Run("plain", "commands", (_mark("plain"), _EDIT), prompt_size=64 << 10, is_inspected=True)
EDITED = Run(
    "edits",
    "commands",
    (
        _mark("edits"),
        *map(edit_command, EDITS),
        run_script(f"cd {WORKDIR} && echo 'a line of the model' >> AGENTS.md"),
    ),
    is_inspected=True,
    has_edits_repository=True,
)
LONG = Run("long", "noop", prompt_size=200 << 10)
NUL = Run("nul", "noop", prompt_end="\0")
ENDLESS = Run("endless", "loop", max_turns=TURNS)
HUNG_MODEL = Run("hung-model", "stall", (_EDIT,), is_short=True)
HUNG_TOOL = Run("hung-tool", "commands", (_EDIT, "sleep 1000"), is_short=True)
RECOVERING = Run("recovering", "flaky", (_EDIT,))
STRAY = Run("stray", "stray", (_EDIT,))
BARE_IMAGE = Run("bare-image", "commands", (_EDIT,), before=_HIDE)
FAILING = tuple(Run(f"provider-{name}", name, is_short=True, about=about) for name, about in FAULTS.items())

BATCHES: tuple[tuple[Run, ...], ...] = (
    (PLAIN, EDITED),
    (LONG, ENDLESS, RECOVERING, STRAY, BARE_IMAGE, HUNG_MODEL, HUNG_TOOL),
    FAILING,
    (NUL,),
)
"""The runs of each batch run at the same time; batches run in this order."""
