"""What a container used, read from its cgroups (of either version) on the host; so the engine must run on it.

The kernel's own peaks are taken where it keeps them. Of processes, older kernels keep none: then the most that was
seen by looking every few milliseconds counts.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from docker.models.containers import Container

EVERY = 0.005
"""Seconds between two looks."""
_ROOT = Path("/sys/fs/cgroup")


class Meter:
    """A container's counts, from when it is made until `stop`."""

    def __init__(self, container: Container) -> None:
        """Begin to watch a running container.

        Raises:
            OSError: its cgroups can't be read here.
        """
        container.reload()
        self._files = _files_of(int(container.attrs["State"]["Pid"]))
        self._before = self._cpu()
        self._pids = 0
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self.cpu_seconds = 0.0
        """Of all processes in it, from this meter's beginning on."""
        self.peak_memory = 0
        """Bytes, page cache included, since the container's beginning."""
        self.peak_pids = 0
        """Processes and threads at one time, the container's own init and shell included, and for a moment the
        engine's, by which it starts a command: about nine. A limit must leave room for all of them."""
        self._watching.start()

    def stop(self) -> None:
        """Take the counts; the container must still run (raises OSError where it doesn't)."""
        self._over.set()
        self._watching.join()
        self.cpu_seconds = self._cpu() - self._before
        self.peak_memory = _number(self._files["memory"])
        self.peak_pids = max(self._pids, _number(self._files["pids"]))

    def _watch(self) -> None:
        current = self._files["pids"].with_name("pids.current")
        while not self._over.wait(EVERY):
            try:
                self._pids = max(self._pids, _number(current))
            except OSError:  # it has ended; `stop` will say so
                return

    def _cpu(self) -> float:
        text = self._files["cpu"].read_text()
        if self._files["cpu"].name == "cpu.stat":
            return int(text.split("usage_usec ")[1].split()[0]) / 1e6
        return int(text) / 1e9


def _files_of(pid: int) -> Mapping[str, Path]:
    """The files of a process's cgroups that tell CPU time, peak memory and peak pids, by what they tell.

    `pids` is where the peak is, or, on kernels without one, the number now.
    """
    rows = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    places = {name: path.lstrip("/") for _, names, path in rows for name in names.split(",")}
    if "memory" in places:
        cpu = _ROOT / "cpuacct" / places["cpuacct"] / "cpuacct.usage"
        memory = _ROOT / "memory" / places["memory"] / "memory.max_usage_in_bytes"
        folder = _ROOT / "pids" / places["pids"]
    else:
        folder = _ROOT / places[""]
        cpu, memory = folder / "cpu.stat", folder / "memory.peak"
    peak = folder / "pids.peak"
    return {"cpu": cpu, "memory": memory, "pids": peak if peak.exists() else folder / "pids.current"}


def _number(path: Path) -> int:
    return int(path.read_text())
