"""An adapter under observation: the claw's own, with the container changed before it and searched after it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

from adapters.base import STATE_DIR, Adapter, CommandResult, Shell, Task
from common.errors import InfrastructureError

PROCESSES = "/tmp/environments-and-command-lines"  # noqa: S108  a path inside the container
"""Where a run records those of all processes while the claw works; it has ended when the container is searched."""
_NEEDLES = "/clawbench-needles"
_SEARCH_SECONDS = 600.0

_SEARCH = Path(__file__).with_name("search_container.sh")


class Watched:
    """An adapter that reports what it saw; it fits `adapters.base.Adapter`."""

    def __init__(
        self, claw: Adapter, *, before: str, needles: Sequence[str] | None, start: Barrier | None = None
    ) -> None:
        """Wrap an adapter.

        Args:
            claw: the adapter.
            before: a shell command to run in the container before the agent is created; "" for none.
            needles: texts that must not be in the container, to search for after the claw has ended; None: the
                container is not searched.
            start: waited for before the claw starts, so that several start together; if one of them does not get
                that far, the others start without it.
        """
        self._claw = claw
        self._before = before
        self._needles = needles
        self._start = start
        self.began = self.ended = 0.0
        """When the claw worked, in seconds since the epoch."""
        self._made = 0.0
        """When the container was new."""
        self.seen = ""
        """What was found in the container."""

    def __getattr__(self, name: str) -> Any:
        """Everything else is the claw's own."""
        return getattr(self._claw, name)

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`."""
        self._made = time.time()
        if self._before:
            done = shell.run(["sh", "-c", self._before], timeout=60, workdir="/")
            if done.exit_code != 0:
                said = done.stderr.decode("utf-8", "replace")
                raise InfrastructureError(f"the container could not be changed: {said}")
        self._claw.create_agent(shell, task)

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        if self._start is not None:
            with suppress(BrokenBarrierError):
                self._start.wait()
        self.began = time.time()
        result = self._claw.send_task(shell, task)
        self.ended = time.time()
        if self._needles is not None and not result.timed_out:
            if hasattr(shell, "logs"):
                shell.logs = None  # the search does not belong in the claw's own logs
            self.seen = self._search(shell, self._needles)
        return result

    def _search(self, shell: Shell, needles: Sequence[str]) -> str:
        mounts = " ".join(shlex.quote(mount.target) for mount in self._claw.container_arguments().mounts)
        head = f"mounts={shlex.quote(mounts)}\nneedles={_NEEDLES}\nstate={STATE_DIR}\n"
        head += f"processes={PROCESSES}\nsince={self._made:.3f}\n"
        shell.put("/", {_NEEDLES.strip("/"): "\n".join(needles).encode()})
        result = shell.run(["bash", "-c", head + _SEARCH.read_text()], timeout=_SEARCH_SECONDS, workdir="/")
        return result.stdout.decode("utf-8", "replace")
