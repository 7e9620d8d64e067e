"""An adapter under watch: it does what the claw's own does, around which the container is changed and searched."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

from adapters.base import STATE_DIR, Adapter, CommandResult, Shell, Task

PROCESSES = "/tmp/environments-and-command-lines"  # noqa: S108  a path inside the container
"""Where a run has those of all processes noted while the claw is at work, which has ended when it is searched."""
_NEEDLES = "/clawbench-needles"
_SEARCH_SECONDS = 600.0

_LOOK = r"""
section() { echo "=== $1"; }
section uid; id -u
section devices; sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '
section routes; sed 1d /proc/net/route
count() {
  awk '/^Ip:/ { if (n++) print $column; else for (i = 1; i <= NF; i++) if ($i == "OutNoRoutes") column = i }' \
    /proc/net/snmp
}
try() { perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "192.0.2.1:80", Timeout => 1)'; }
section tries; count
try; try; try
section tries-after-three-of-ours; count
section peers; awk '$1 ~ /:$/ { print $3 }' /proc/net/tcp /proc/net/udp | grep -v -e '^0100007F:' -e '^00000000:'
section writable
for mount in $mounts; do
  if [ -d "$mount" ]; then (: > "$mount/.conformance") 2>/dev/null && echo "$mount"
  else (: >> "$mount") 2>/dev/null && echo "$mount"; fi
done
section processes; test -s "$processes" && echo seen
section found
export LC_ALL=C
{
  grep -rlaF -D skip -f "$needles" /testbed /tmp /root /home /etc /run /var/log "$state" $mounts
  find / -xdev -type f -newerct "@$since" ! -path "$needles" -exec grep -laF -f "$needles" {} +
  grep -laF -f "$needles" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts
} 2>/dev/null | sort -u
section end
"""


class Watched:
    """An adapter that tells what it saw; it fits `adapters.base.Adapter`."""

    def __init__(
        self, claw: Adapter, *, before: str, needles: Sequence[str] | None, start: Barrier | None = None
    ) -> None:
        """Watch an adapter.

        Args:
            claw: the adapter.
            before: a shell command that is run in the container before the agent is created; "" for none.
            needles: texts that must not be in the container, to be searched for when the claw has ended; None:
                it is not searched.
            start: is waited at before the claw starts, so that several start together; where one of them does
                not come so far, the others go on.
        """
        self._claw = claw
        self._before = before
        self._needles = needles
        self._start = start
        self.began = self.ended = 0.0
        """When the claw worked, in seconds since the epoch."""
        self._made = 0.0
        """When the container was there and nothing had been put into it."""
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
                raise OSError(f"the container could not be changed: {done.stderr.decode('utf-8', 'replace')}")
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
            self.seen = self._look(_unlogged(shell), self._needles)
        return result

    def _look(self, shell: Shell, needles: Sequence[str]) -> str:
        mounts = " ".join(shlex.quote(mount.target) for mount in self._claw.container_arguments().mounts)
        head = f"mounts={shlex.quote(mounts)}\nneedles={_NEEDLES}\nstate={STATE_DIR}\n"
        head += f"processes={PROCESSES}\nsince={self._made:.3f}\n"
        shell.put("/", {_NEEDLES.strip("/"): "\n".join(needles).encode()})
        result = shell.run(["bash", "-c", head + _LOOK], timeout=_SEARCH_SECONDS, workdir="/")
        return result.stdout.decode("utf-8", "replace")


def _unlogged(shell: Shell) -> Shell:
    """The shell, whose commands from now on do not go into the claw's own logs."""
    if hasattr(shell, "logs"):
        shell.logs = None
    return shell


def sections(seen: str) -> dict[str, list[str]]:
    """What was found, line by line, by its heading."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in seen.splitlines():
        if line.startswith("=== "):
            lines = found.setdefault(line.removeprefix("=== "), [])
        elif line:
            lines.append(line)
    return found
