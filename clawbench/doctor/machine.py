"""Whether the machine has the memory, disk, files and processes for so many workers, and the programs called."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from docker.utils import parse_bytes
from packaging.requirements import Requirement

from adapters.registry import adapter
from clawbench.claw_limits import lacks
from clawbench.doctor.asked import Asked
from clawbench.doctor.engine import Engine
from clawbench.doctor.findings import Finding, fault, ok, size, warning
from clawbench.scheduling.workers import described

WORKER_MEMORY = 300e6
"""Bytes of a worker's own process, with the harness loaded."""
EVALUATION_MEMORY = 500e6
"""Bytes that the tests of an evaluation take at the least; many take more, and the harness sets no limit."""
CASE_BYTES = 10e6
RECORDED_BYTES = 60e6
"""Bytes of a case's artifacts with logs, session and evaluation; with a recording, in which each request holds the
whole conversation up to it, more."""
FILES, FILES_A_WORKER = 64, 16
"""Open files of the controller and of the gateway, and what each worker adds to either: pipes and sockets."""
PROCESSES, PROCESSES_A_WORKER = 16, 32
"""The same for processes and threads of this user."""
WATCHERS, WATCHERS_A_WORKER = 32, 4
"""The same for inotify instances: containers of one user share them, and claws on Node watch their own files."""
LEAST_GIT = (2, 32)
"""From here on git reads no configuration but what it is given (`GIT_CONFIG_GLOBAL`)."""


def memory(asked: Asked, engine: Engine) -> Iterator[Finding]:
    """Whether all workspaces have room: a worker has one container at a time, the claw's or the judge's."""
    settings, total = asked.settings, float(engine.info.get("MemTotal") or 0)
    limit = float(parse_bytes(settings.memory))
    needs = {name: float(parse_bytes(adapter(name).min_memory)) for name in asked.installed}
    for lack in (lack for name in needs for lack in lacks(name, settings)):
        yield fault(lack.what, str(lack), f"set {lack.variable} to {lack.needed.split()[0]} or more")
    if not total:
        return
    need = max(needs.values(), default=0.0) + WORKER_MEMORY
    beside = asked.evaluations * (EVALUATION_MEMORY + WORKER_MEMORY)
    least = asked.agents * need + beside
    most = asked.workers * (limit + WORKER_MEMORY)
    at_once = described(asked.settings).partition(" at once")[0]
    found = f"{size(total)} for {at_once}: {size(least)} at the least, {size(most)} at their limits"
    if least > total:
        yield fault("memory", found, f"fewer at once: -n {max(1, int((total - beside) // need))}")
    elif most > total:
        at_limits = max(1, int(total // (limit + WORKER_MEMORY)) - asked.evaluations)
        yield warning("memory", found, f"-n {at_limits} has room whatever they do; or lower CLAW_CONTAINER_MEMORY")
    else:
        yield ok("memory", found)


def artifacts(asked: Asked) -> Iterator[Finding]:
    """Whether the folders that a run writes to can be written, and have room."""
    folder = asked.settings.artifacts
    each = CASE_BYTES + (RECORDED_BYTES if asked.settings.record else 0)
    for name, place in (("artifacts", folder), ("home", asked.home), ("scratch", Path(tempfile.gettempdir()))):
        there = next(path for path in (place, *place.parents) if path.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            yield fault(name, f"{place} can't be written: {error.strerror}", _ADVICE[name])
            continue
        if name != "artifacts":
            continue
        free, needed = shutil.disk_usage(there).free, each * len(asked.cases)
        found = f"{size(free)} free in {place}, about {size(needed)} for {len(asked.cases)} cases"
        if free < max(min(needed, each * asked.workers), asked.settings.disk_reserve // 10):
            yield fault(name, found, _ADVICE[name])
        elif free < needed:
            yield warning(name, found, "free some, or the run ends when it is full; the same command goes on then")
        else:
            yield ok(name, found)


_ADVICE = {
    "artifacts": "free some space there, or give another folder by --artifacts=DIR",
    "home": "let CLAWBENCH_HOME name a folder that can be written",
    "scratch": "let TMPDIR name a folder that can be written",
}


def open_files(asked: Asked) -> Finding:
    """Whether one process may open what so many cases need: the gateway holds the sockets of all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FILES + FILES_A_WORKER * asked.workers
    found = f"{_many(soft)} for a process, about {needed} needed for {asked.workers} at once"
    if soft != resource.RLIM_INFINITY and soft < needed:
        can = "" if hard == resource.RLIM_INFINITY or hard >= needed else " (as root, or in limits.conf)"
        return fault("open files", found, f"ulimit -n {max(1024, needed)}{can}, or fewer at once")
    return ok("open files", found)


def processes(asked: Asked, engine: Engine) -> Finding:
    """Whether the kernel and this user's limit have room for the processes of all workspaces."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    own = PROCESSES + PROCESSES_A_WORKER * asked.workers
    if os.getuid() and soft != resource.RLIM_INFINITY and soft < own:
        return fault(
            "processes", f"{soft} for this user, about {own} needed", f"ulimit -u {own * 2}, or fewer at once"
        )
    most = asked.workers * asked.settings.pids_limit
    kernel = min(_number("/proc/sys/kernel/pid_max"), _number("/proc/sys/kernel/threads-max"))
    found = (
        f"{kernel} in this kernel, {most} where all workspaces are at their limit of {asked.settings.pids_limit}"
    )
    if engine.is_here and most > kernel * 3 / 4:
        return warning("processes", found, "fewer at once, or a higher kernel.pid_max")
    return ok("processes", found)


def inotify(asked: Asked, engine: Engine) -> Iterator[Finding]:
    """Whether programs that watch files can: the limit is one for all containers of a user."""
    if not engine.is_here:
        return
    instances = _number("/proc/sys/fs/inotify/max_user_instances")
    needed = WATCHERS + WATCHERS_A_WORKER * asked.workers
    found = f"{instances} watchers for a user, about {needed} wanted for {asked.workers} at once"
    if instances < needed:
        yield warning("inotify", found, f"sysctl fs.inotify.max_user_instances={max(512, needed)}")
    else:
        yield ok("inotify", found)


def _number(file: str) -> int:
    """A number of the kernel's; where it tells none there is no limit to be told of."""
    try:
        return int(Path(file).read_text())
    except (OSError, ValueError):
        return 1 << 31


def _many(limit: int) -> str:
    return "no limit" if limit == resource.RLIM_INFINITY else str(limit)


def git() -> Finding:
    """Whether the git is there that makes patches."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        return fault("git", f"it can't be run: {error}", "install git: patches are made on this machine")
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < LEAST_GIT:
        return warning("git", said, "install git 2.32 or newer: older ones also read the user's own settings")
    return ok("git", said.removeprefix("git version "))


def packages() -> Finding:
    """Whether the installed packages are those that this version asks for."""
    wrong = []
    for line in requires("clawbench") or []:
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            has = version(wanted.name)
        except PackageNotFoundError:
            has = "missing"
        if has == "missing" or not wanted.specifier.contains(has, prereleases=True):
            wrong.append(f"{wanted.name} is {has}, wanted {wanted.specifier or 'any'}")
    if wrong:
        return fault("packages", "; ".join(wrong), "make venv (or pip install -e .)")
    return ok("packages", "as clawbench asks for them")
