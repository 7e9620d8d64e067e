"""Whether the Docker engine is there, recent enough, and able to enforce what a workspace guarantees."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import docker

from clawbench.preflight.findings import Finding, fault, ok, warning
from clawbench.run import disk
from clawbench.run.worker_context import NoEngineError, connect

LEAST_API = (1, 35)
"""Docker 17.12; before it, a command in a container could not be given its folder (`exec_create(workdir=…)`)."""
TESTED_API = (1, 41)
"""Docker 20.10, the oldest engine that the suite is tested with; before it, no container could be created for another
platform (`POST /containers/create?platform=…`, API version history)."""
SKEW = 1.0
"""Seconds. How a container ended is read from the engine's record of events, starting at a time by our clock."""


@dataclass(frozen=True)
class Engine:
    """An engine that answers."""

    client: docker.DockerClient
    info: Mapping[str, Any]
    api: tuple[int, ...]
    ahead: float
    """Seconds by which its clock is at least ahead of ours; negative if it is behind."""

    @property
    def root(self) -> Path | None:
        """The folder of its images and containers; None if it is not on this machine."""
        return disk.data_root(self.client, self.info)

    @property
    def is_here(self) -> bool:
        """Whether it is reached by a socket of this machine."""
        return str(self.client.api.base_url).startswith("http+docker://")


def reach() -> tuple[list[Finding], Engine | None]:
    """Connect to the engine (raises DockerException, OSError if it falls silent)."""
    try:
        client = connect(timeout=30)
    except NoEngineError as error:
        where = os.environ.get("DOCKER_HOST", "its default socket")
        return [fault("docker", f"it does not answer at {where}: {error.why}", error.to_do)], None
    began = time.time()
    info = client.info()
    ended = time.time()
    api = tuple(int(part) for part in str(client.version().get("ApiVersion", "0")).split("."))
    engine = Engine(client, info, api, _ahead(info.get("SystemTime"), began, ended))
    return [_version(engine), _memory_limits(engine), _storage(engine), _architecture(engine)], engine


def _version(engine: Engine) -> Finding:
    found = f"Docker {engine.info.get('ServerVersion')}, API {'.'.join(map(str, engine.api))}"
    if engine.api < LEAST_API:
        return fault("docker", found, "install Docker 20.10 or newer (API 1.41); the minimum is 17.12 (API 1.35)")
    if engine.api < TESTED_API:
        return warning("docker", found, "install Docker 20.10 or newer (API 1.41): older ones are not tested")
    return ok("docker", found)


def _memory_limits(engine: Engine) -> Finding:
    """Whether a workspace's limits are enforced: an engine that can't enforce one only warns, and runs without it."""
    info = engine.info
    lacking = [name for name, key in (("memory", "MemoryLimit"), ("processes", "PidsLimit")) if not info.get(key)]
    to_do = (
        "give the engine's kernel the missing cgroup controllers (cgroup v2, or `cgroup_enable=memory "
        "swapaccount=1` on the kernel's command line)"
    )
    warnings = [str(line) for line in info.get("Warnings") or []]
    if lacking:
        return fault("limits", f"the engine can't limit a container's {' and '.join(lacking)}", to_do)
    if not info.get("SwapLimit"):
        return warning("limits", "the engine can't keep a container from swapping beyond its memory", to_do)
    if warnings:
        return warning("limits", f"the engine warns: {'; '.join(warnings)}", "follow its advice")
    return ok("limits", f"memory, swap and processes (cgroup v{info.get('CgroupVersion', '1')})")


def _storage(engine: Engine) -> Finding:
    """Whether the export can read a workspace's own layer (see `workspace.changes`)."""
    driver = str(engine.info.get("Driver"))
    status = {str(row[0]): str(row[1]) for row in engine.info.get("DriverStatus") or [] if len(row) == 2}
    whole = status.get("Native Overlay Diff") == "true" and status.get("Using metacopy", "false") == "false"
    if driver == "overlay2" and whole:
        return ok("storage", f"{driver} on {status.get('Backing Filesystem', 'an unknown file system')}")
    return warning(
        "storage",
        f"{driver}, whose layers can't be read as files: each export reads the whole repository",
        "it works, but takes longer; overlay2 with native diffs is faster",
    )


def _architecture(engine: Engine) -> Finding:
    machine = str(engine.info.get("Architecture"))
    if machine in {"x86_64", "amd64"}:
        return ok("architecture", machine)
    return warning(
        "architecture",
        f"{machine} ({platform.machine()} here): the official images are for x86_64",
        "they run emulated (binfmt_misc with QEMU), and slowly; the numbers can't be compared with others",
    )


def clock(engine: Engine) -> Finding:
    """Whether the engine's clock and ours agree."""
    if abs(engine.ahead) <= SKEW:
        return ok("engine's clock", "as ours")
    way = "ahead of" if engine.ahead > 0 else "behind"
    return fault(
        "engine's clock",
        f"{abs(engine.ahead):.0f} s {way} ours: its record could not show how containers ended",
        "set both by NTP",
    )


def _ahead(time_text: object, began: float, ended: float) -> float:
    """By how many seconds a clock is ahead that was read between two times of ours."""
    try:
        # Python does not parse nanoseconds
        text = str(time_text)[:19].replace(" ", "T")
        zone = str(time_text)[19:].lstrip(".0123456789") or "+00:00"
        read = datetime.fromisoformat(text + zone.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
    # these are whole seconds: up to one more has passed
    return read + 1 - began if read + 1 < began else max(0.0, read - ended)
