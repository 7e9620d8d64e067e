"""The command that a user would type, under observation: its processes, and what memory they have."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from clawbench import ROOT
from common.processes import start_of

EVERY = 0.2
"""Seconds between two looks at the processes."""


@dataclass
class Memory:
    """What one process had, look by look."""

    kind: str
    """`controller`, `worker` or `gateway`."""
    looks: list[tuple[int, int]] = field(default_factory=list)
    """How far the run was, by the measure of who asks, and KiB resident."""
    peak: int = 0
    """KiB, by the kernel's own account."""

    def growth(self) -> float:
        """KiB that it grew by for each step of the run after the first fifth; 0 where there were too few.

        What it takes after the last step, to write reports, is in its peak.
        """
        last = self.looks[-1][0]
        warm = [look for look in self.looks if last / 5 <= look[0] < last]
        if not warm or (steps := warm[-1][0] - warm[0][0]) <= 10:
            return 0.0
        return (warm[-1][1] - warm[0][1]) / steps


class Command:
    """A command at work."""

    def __init__(self, process: subprocess.Popen[bytes], progress: Callable[[], int]) -> None:
        """Use `started`."""
        self.process = process
        self.memory: dict[int, Memory] = {}
        """By pid, of every process that was seen."""
        self._progress = progress
        self._seen: set[tuple[int, str]] = set()
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True, name="memory")
        self._watching.start()

    def of_kind(self, kind: str) -> list[int]:
        """The pids of the command's processes of a kind that are there at this moment."""
        return [pid for pid, found in self._family() if found == kind]

    def left_behind(self) -> list[int]:
        """The pids of all its processes that are not gone yet; another process may have the number since."""
        return [pid for pid, start in sorted(self._seen) if start_of(pid) == start]

    def kill(self, pid: int) -> bool:
        """End a process at once, as a kernel without memory does; False where it has ended before."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def _family(self) -> list[tuple[int, str]]:
        """Every process that is there, with what it is."""
        pid = self.process.pid
        children: list[str] = []
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found = [(pid, "controller"), *((int(child), kind) for child in children if (kind := _kind(child)))]
        # a list is whole before any of it is noted: what watches does so in a thread of its own
        self._seen |= {(child, start) for child, _ in found if (start := start_of(child)) is not None}
        return found

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            far = self._progress()
            for pid, kind in self._family():
                with suppress(OSError, KeyError, ValueError):
                    now, peak = _memory(pid)
                    held = self.memory.setdefault(pid, Memory(kind))
                    held.looks.append((far, now))
                    held.peak = peak

    def stop_watching(self) -> None:
        """No more looks."""
        self._over.set()
        self._watching.join()


@contextmanager
def started(
    arguments: Sequence[str], environment: Mapping[str, str], output: Path, progress: Callable[[], int]
) -> Iterator[Command]:
    """A command that was started in the checkout, and does not outlive the block.

    Args:
        arguments: the program first.
        environment: the whole of it.
        output: the file that what it says is appended to.
        progress: how far it is, by any measure.
    """
    with output.open("ab") as sink:
        process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=sink, stderr=sink)
    command = Command(process, progress)
    try:
        yield command
    finally:
        command.stop_watching()
        if process.poll() is None:
            process.kill()
        process.wait()


def _kind(child: str) -> str:
    """What a child of the controller is; "" for one that is neither (yet), or gone."""
    try:
        line = Path(f"/proc/{child}/cmdline").read_bytes()
    except OSError:
        return ""
    if b"gateway.server" in line:
        return "gateway"
    # execnet's way to start a worker of pytest-xdist
    return "worker" if b"sys.stdin.readline" in line else ""


def _memory(pid: int) -> tuple[int, int]:
    """KiB resident, now and at the most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    rows = dict(line.split(":", 1) for line in lines)
    return int(rows["VmRSS"].split()[0]), int(rows["VmHWM"].split()[0])
