"""The cases that the conformance suite runs for each claw, and which of them at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from clawbench.conformance.repository import EDITS, edit_command
from clawbench.conformance.watching import PROCESSES
from gateway.behaviours.base import run_script
from workspace.prepare import WORKDIR

AMPLE = 900.0
"""Seconds of a budget that is not to be used up."""
TURNS = 4
"""The limit of turns where it is to be reached."""
FAULTS = {
    "unauthorized": "401",
    "limited": "429 with Retry-After",
    "broken": "500",
    "dropped": "a dropped connection",
    "garbage": "a malformed stream",
    "empty": "an empty answer",
}
"""Behaviours of a provider that fails for good, each with what it answers."""
EDIT = ("conformance-edit.txt", "edited before the end\n")
"""A file that a run makes before anything goes wrong, and its content."""

_EDIT = f"cd {WORKDIR} && printf '{EDIT[1].strip()}\\n' > {EDIT[0]}"
_HIDE = (
    "mkdir /root/hidden; for name in python3 python python3.11 python3.12 node nodejs npm git pip pip3; do "
    'while at=$(command -v "$name"); do mv "$at" "/root/hidden/$name.$(ls /root/hidden | wc -l)" || exit 1; '
    "done; done"
)


@dataclass(frozen=True)
class Run:
    """One case."""

    name: str
    model: str
    commands: tuple[str, ...] = ()
    prompt_size: int = 2000
    """Bytes."""
    prompt_end: str = ""
    """What comes after those."""
    max_turns: int = 40
    is_short: bool = False
    """Whether its budget is small: some multiple of what the claw takes for a plain task."""
    before: str = ""
    """A shell command that the container is changed by before the claw comes."""
    is_inspected: bool = False
    """Whether the container is searched when the claw has ended."""
    has_edits_repository: bool = False
    about: str = ""
    """What sets it apart from others of its kind, in words."""

    @property
    def token(self) -> str:
        """A word that only this run's prompt and commands hold."""
        return f"token-of-{self.name}-run"


def _mark(name: str) -> str:
    """A command that leaves a run's token where another run would find it, and notes the processes."""
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
"""What is run at the same time, in this order."""
