"""Whether the machine has the memory, disks, files and processes for so many workers, and the programs they need."""

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
from adapters.runtimes import default_home
from clawbench.preflight.engine_checks import Engine
from clawbench.preflight.findings import Finding, fault, ok, warning
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.claw_limits import lacks
from clawbench.run.disk import shown

WORKER_MEMORY = 300e6
"""Bytes of a worker's own process, with the harness loaded."""
EVALUATION_MEMORY = 500e6
"""Bytes that an evaluation's tests take at least; many take more, and the harness sets no limit."""
CASE_BYTES, RECORDED_BYTES = 10e6, 60e6
"""Bytes of a case's artifacts with logs, session and evaluation, and of its recording, in which each request holds
the whole conversation before it."""
IMAGE_BYTES, EMBEDDED_BYTES = 2.5e9, 0.4e9
"""Bytes of an official image (they have 1 to 3 GB) and of an embedded task's, each with what is prepared of it."""
SCRATCH_BYTES = 0.2e9
"""Bytes of temporary files: an export keeps a copy of the start tree and the changed files there."""
CONTAINER_BYTES = 0.5e9
"""Bytes that a container writes: a build, a test run."""
FILES, FILES_A_WORKER = 64, 16
"""Open files (pipes and sockets) of the controller or the gateway, and what each worker adds to either."""
PROCESSES, PROCESSES_A_WORKER = 16, 32
"""The same for this user's processes and threads."""
WATCHERS, WATCHERS_A_WORKER = 32, 4
"""The same for inotify instances: the containers of a user share them, and claws on Node watch their own files."""
LEAST_GIT = (2, 32)
"""The first git that can be kept from reading the user's configuration (`GIT_CONFIG_GLOBAL`)."""

_TO_DO = {
    "artifacts": "free some space there, or give another folder by --artifacts=DIR",
    "home": "let CLAWBENCH_HOME name a folder that can be written",
    "scratch": "let TMPDIR name a folder that can be written and has room",
}


def memory(run: PlannedRun, engine: Engine) -> Iterator[Finding]:
    """Whether there is memory for all workspaces: a worker has one container at a time, the claw's or the judge's."""
    settings, total = run.settings, float(engine.info.get("MemTotal") or 0)
    limit = float(parse_bytes(settings.memory))
    needs = [float(parse_bytes(adapter(name).min_memory)) for name in run.installed]
    for lack in (lack for name in run.installed for lack in lacks(name, settings)):
        yield fault(lack.what, str(lack), f"set {lack.variable} to {lack.needed.split()[0]} or more")
    if not total:
        return
    need = max(needs, default=0.0) + WORKER_MEMORY
    beside = settings.evaluators * (EVALUATION_MEMORY + WORKER_MEMORY)
    least = settings.agents * need + beside
    most = run.workers * (limit + WORKER_MEMORY)
    found = f"{shown(total)} for {settings.at_once}: they need {shown(least)}, or {shown(most)} at their limits"
    if least > total:
        yield fault("memory", found, f"fewer at once: -n {max(1, int((total - beside) // need))}")
    elif most > total:
        at_limits = max(1, int(total // (limit + WORKER_MEMORY)) - settings.evaluators)
        yield warning("memory", found, f"-n {at_limits} fits in any case; or lower CLAW_CONTAINER_MEMORY")
    else:
        yield ok("memory", found)


def engine_disk(run: PlannedRun, engine: Engine, missing: int, missing_embedded: int) -> Finding:
    """Whether the engine's disk has room for the images that are not here yet, and for the running containers.

    Args:
        run: the run.
        engine: its engine.
        missing: how many images of real instances are not here.
        missing_embedded: how many images of embedded tasks are not here.
    """

    def room_for(images: int, embedded: int) -> float:
        return images * IMAGE_BYTES + embedded * EMBEDDED_BYTES + run.workers * CONTAINER_BYTES

    name, needed = "engine's disk", room_for(missing, missing_embedded)
    if engine.root is None:
        folder = engine.info.get("DockerRootDir")
        return warning(name, f"{folder} is not visible from here", f"make sure that it has {shown(needed)} free")
    free = shutil.disk_usage(engine.root).free
    at_once = room_for(min(missing, run.workers), min(missing_embedded, run.workers))
    to_come = missing + missing_embedded
    found = f"{shown(free)} free in {engine.root}, about {shown(needed)} needed with {to_come} images to come"
    least = max(at_once, float(run.settings.disk_reserve))  # below the reserve no case begins
    if free < least:
        return fault(name, found, f"free at least {shown(least - free)} (docker system df)")
    if run.settings.image_policy != "keep":
        return ok(name, f"{found}, of which --image-policy keeps a part at a time")
    if free < needed:
        return warning(name, found, "free some, select less at a time, or see --image-policy")
    return ok(name, found)


def artifacts(run: PlannedRun) -> Iterator[Finding]:
    """Whether the folders that a run writes to can be written, and have room."""
    folder = run.settings.artifacts
    each = CASE_BYTES + (RECORDED_BYTES if run.settings.record else 0)
    # not `tempfile.gettempdir()`: it silently takes another folder if this one is full
    scratch = Path(os.environ.get("TMPDIR") or tempfile.gettempdir())
    for name, place in (("home", default_home()), ("scratch", scratch), ("artifacts", folder)):
        there = next(path for path in (place, *place.parents) if path.exists())
        try:
            with tempfile.TemporaryFile(dir=there) as file:
                file.write(b"anything")
        except OSError as error:
            yield fault(name, f"{place} can't be written: {error.strerror}", _TO_DO[name])
            continue
        free, needed = shutil.disk_usage(there).free, each * len(run.cases)
        if name == "scratch" and free < SCRATCH_BYTES:
            yield fault(name, f"{shown(free)} free in {place}, {shown(SCRATCH_BYTES)} needed", _TO_DO[name])
        if name != "artifacts":
            continue
        found = f"{shown(free)} free in {place}, about {shown(needed)} for {len(run.cases)} cases"
        if free < max(min(needed, each * run.workers), run.settings.disk_reserve // 10):
            yield fault(name, found, _TO_DO[name])
        elif free < needed:
            to_do = "free some, or the run ends when the disk is full; the same command then resumes it"
            yield warning(name, found, to_do)
        else:
            yield ok(name, found)


def open_files(run: PlannedRun) -> Finding:
    """Whether one process may open enough files: the gateway holds the sockets of all cases."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FILES + FILES_A_WORKER * run.workers
    limit = "no limit" if soft == resource.RLIM_INFINITY else str(soft)
    found = f"{limit} for a process, about {needed} needed for {run.workers} at once"
    if soft != resource.RLIM_INFINITY and soft < needed:
        how = "" if hard == resource.RLIM_INFINITY or hard >= needed else " (as root, or in limits.conf)"
        return fault("open files", found, f"ulimit -n {max(1024, needed)}{how}, or fewer at once")
    return ok("open files", found)


def processes(run: PlannedRun, engine: Engine) -> Finding:
    """Whether the kernel's and this user's limits allow the processes of all workspaces."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    own = PROCESSES + PROCESSES_A_WORKER * run.workers
    if os.getuid() and soft != resource.RLIM_INFINITY and soft < own:
        found = f"{soft} for this user, about {own} needed"
        return fault("processes", found, f"ulimit -u {own * 2}, or fewer at once")
    limit = run.settings.pids_limit
    most = run.workers * limit
    kernel = min(_number("/proc/sys/kernel/pid_max"), _number("/proc/sys/kernel/threads-max"))
    found = f"{kernel} in this kernel, {most} if all workspaces are at their limit of {limit}"
    if engine.is_here and most > kernel * 3 / 4:
        return warning("processes", found, "fewer at once, or a higher kernel.pid_max")
    return ok("processes", found)


def inotify(run: PlannedRun, engine: Engine) -> Iterator[Finding]:
    """Whether programs can watch files: one limit holds for all containers of a user."""
    if not engine.is_here:
        return
    instances = _number("/proc/sys/fs/inotify/max_user_instances")
    needed = WATCHERS + WATCHERS_A_WORKER * run.workers
    found = f"{instances} watchers for a user, about {needed} needed for {run.workers} at once"
    if instances < needed:
        yield warning("inotify", found, f"sysctl fs.inotify.max_user_instances={max(512, needed)}")
    else:
        yield ok("inotify", found)


def _number(file: str) -> int:
    """A number of the kernel's; a very high one if the kernel does not have it."""
    try:
        return int(Path(file).read_text())
    except (OSError, ValueError):
        return 1 << 31


def git() -> Finding:
    """Whether there is a git, which makes the patches, and it is recent enough."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        return fault("git", f"it can't be run: {error}", "install git: patches are made on this machine")
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < LEAST_GIT:
        return warning("git", said, "install git 2.32 or newer: older ones also read the user's own settings")
    return ok("git", said.removeprefix("git version "))


def packages() -> Finding:
    """Whether the installed packages have the versions that this version requires."""
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
            wrong.append(f"{wanted.name} is {has}, required is {wanted.specifier or 'any'}")
    if wrong:
        return fault("packages", "; ".join(wrong), "make venv (or pip install -e .)")
    return ok("packages", "as required")
