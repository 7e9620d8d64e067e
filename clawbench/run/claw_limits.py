"""Whether a workspace's limits are high enough for a claw to start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from docker.utils import parse_bytes

from adapters.registry import adapter
from clawbench.run.settings import Settings


@dataclass(frozen=True)
class Lack:
    """A limit that is below a claw's minimum."""

    claw: str
    what: str
    needed: str
    variable: str
    """The environment variable that sets the limit."""
    limit: str

    def __str__(self) -> str:
        return f"{self.claw} needs {self.needed}: {self.variable}={self.limit} is too little {self.what}"


def lacks(claw: str, settings: Settings) -> Iterator[Lack]:
    """The limits that are below a claw's minimum.

    Args:
        claw: one that is installed.
        settings: of the run.
    """
    needs = adapter(claw)
    if settings.pids_limit < needs.min_pids:
        needed = f"{needs.min_pids} processes"
        yield Lack(claw, "processes", needed, "CLAW_PIDS_LIMIT", str(settings.pids_limit))
    if parse_bytes(settings.memory) < parse_bytes(needs.min_memory):
        yield Lack(claw, "memory", needs.min_memory, "CLAW_CONTAINER_MEMORY", settings.memory)
