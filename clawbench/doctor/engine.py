"""Whether the Docker engine is there, recent enough, and able to hold what a workspace promises."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import docker

from clawbench import disk
from clawbench.bench import connect
from clawbench.doctor.findings import Finding, fault, ok, warning
from workspace.errors import WorkspaceError

LEAST_API = (1, 35)
"""Docker 17.12: before, a command in a container could not be given its folder (`exec_create(workdir=…)`)."""
TRIED_API = (1, 41)
"""Docker 20.10: the oldest engine that the suite is run against; before, no container could be created for another
platform (`POST /containers/create?platform=…`, API version history)."""
SKEW = 1.0
"""Seconds. How a container ended is read from the engine's record of events, from a time of ours on."""

_START = "start it (`make docker` on Debian and Ubuntu as root), or let DOCKER_HOST name an engine that runs"


@dataclass(frozen=True)
class Engine:
    """An engine that answers."""

    client: docker.DockerClient
    info: Mapping[str, Any]
    api: tuple[int, ...]
    ahead: float
    """Seconds by which its clock is ahead of ours, at the least; below 0 where it is behind."""

    @property
    def root(self) -> Path | None:
        """The folder of its images and containers, where that can be looked at from here."""
        return disk.data_root(self.client, self.info)

    @property
    def is_here(self) -> bool:
        """Whether it is reached by a socket of this machine."""
        return str(self.client.api.base_url).startswith("http+docker://")


def reach() -> tuple[list[Finding], Engine | None]:
    """Find the engine, and what it says of itself (raises DockerException, OSError where it falls silent)."""
    try:
        client = connect(timeout=30)
    except WorkspaceError as error:
        where = os.environ.get("DOCKER_HOST", "its default socket")
        # the SDK's errors hold each other, and the system's own words come last
        why = re.findall(r"\[Errno -?\d+\] ([^'\")]+)", str(error)) or [str(error.__cause__)[:200]]
        return [fault("docker", f"it does not answer at {where}: {why[-1]}", _START)], None
    began = time.time()
    info = client.info()
    ended = time.time()
    told = client.version()
    api = tuple(int(part) for part in str(told.get("ApiVersion", "0")).split("."))
    engine = Engine(client, info, api, _ahead(info.get("SystemTime"), began, ended))
    return [_version(engine), *_memory_limits(engine), _storage(engine), _architecture(engine)], engine


def _version(engine: Engine) -> Finding:
    version, api = engine.info.get("ServerVersion"), ".".join(map(str, engine.api))
    found = f"Docker {version}, API {api}"
    if engine.api < LEAST_API:
        return fault("docker", found, "install Docker 20.10 or newer (API 1.41); 17.12 (API 1.35) is the least")
    if engine.api < TRIED_API:
        return warning("docker", found, "install Docker 20.10 or newer (API 1.41): older ones are not tried")
    return ok("docker", found)


def _memory_limits(engine: Engine) -> Iterator[Finding]:
    """Whether what a workspace may use is enforced: an engine that can't do so only warns, and runs it without."""
    info = engine.info
    lacking = [name for name, key in (("memory", "MemoryLimit"), ("processes", "PidsLimit")) if not info.get(key)]
    advice = (
        "give the engine's kernel the cgroup controllers that it lacks (cgroup v2, or `cgroup_enable=memory "
        "swapaccount=1` on the kernel's command line)"
    )
    told = [str(line) for line in info.get("Warnings") or []]
    if lacking:
        yield fault("limits", f"the engine can't limit {' and '.join(lacking)} of a container", advice)
    elif not info.get("SwapLimit"):
        yield warning("limits", "the engine can't keep a container from swap beyond its memory", advice)
    elif told:
        yield warning("limits", f"the engine warns: {'; '.join(told)}", "see to what it says")
    else:
        yield ok("limits", f"memory, swap and processes (cgroup v{info.get('CgroupVersion', '1')})")


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
        "it works, and takes longer; overlay2 with native diffs is faster",
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
        f"{abs(engine.ahead):.0f} s {way} ours: how containers ended could not be told from its record",
        "set both by NTP",
    )


def _ahead(told: object, began: float, ended: float) -> float:
    """By how much a clock is ahead that was read between two times of ours."""
    try:
        # nanoseconds are more than Python reads
        text = str(told)[:19].replace(" ", "T")
        zone = str(told)[19:].lstrip(".0123456789") or "+00:00"
        read = datetime.fromisoformat(text + zone.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
    # whole seconds: up to one more has passed
    return read + 1 - began if read + 1 < began else max(0.0, read - ended)
