"""Whose container is this? Labels name the process that made it; the next run removes what has no owner left.

A process is known by machine, pid and start time, so that neither a reused pid nor another machine (or a
container with processes of its own) that shares the engine is mistaken for an owner that is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound, NotFound

OWNER = "clawbench.owner"
RUN = "clawbench.run"
CASE = "clawbench.case"
MAKER = "clawbench.maker"
"""On an image that has no name yet: the process that is to name it."""
KEPT_PREFIX = "kept."
"""Begins the name of a container that a user asked to keep."""


@cache
def _machine() -> str:
    """The kernel's present boot, and which of its processes can be seen from here: a container has its own."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"


def start_of(pid: int) -> str | None:
    """The start time of a process in clock ticks since boot, or None where there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the command's name stands in parentheses and may hold anything, spaces and parentheses included
    fields = stat.rpartition(")")[2].split()
    if fields[0] == "Z":
        return None
    return fields[19]


def this_process() -> str:
    """The label's value for containers that this process makes."""
    pid = os.getpid()
    return f"{_machine()}:{pid}:{start_of(pid)}"


def has_ended(pid: int) -> bool:
    """Whether a process is no more, or no more than a number that its parent has not asked for yet."""
    return start_of(pid) is None


def is_gone(owner: str) -> bool:
    """Whether the process that a label names has ended (False where it can't be told from here)."""
    machine, _, rest = owner.partition(":")
    pid, _, started = rest.partition(":")
    if machine != _machine():
        # another boot of this machine, or another machine on a shared engine: of the two only the first
        # is certain to be gone, and they can't be told apart, so only a container that no longer runs goes
        return False
    return not pid.isdigit() or start_of(int(pid)) != started


def labels(run_id: str, case_id: str = "") -> dict[str, str]:
    """The labels for a container of this process."""
    return {OWNER: this_process(), RUN: run_id, CASE: case_id}


def sweep(client: docker.DockerClient) -> list[str]:
    """Remove the containers, and the images without a name, of runs whose owner is gone.

    Running runs and kept containers stay.

    Returns:
        what was removed, by kind and name.
    """
    return [*_sweep_containers(client), *_sweep_images(client)]


def _sweep_containers(client: docker.DockerClient) -> Iterator[str]:
    for container in client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True):
        found: Mapping[str, str] = container.labels
        is_kept = str(container.name).startswith(KEPT_PREFIX)
        if is_kept or not _abandoned(found.get(OWNER, ""), container.status):
            continue
        try:
            container.remove(force=True, v=True)
        except NotFound:
            continue
        except APIError as error:
            if error.status_code == 409:  # another run sweeps it at this moment
                continue
            raise
        yield f"container {container.name}"


def _sweep_images(client: docker.DockerClient) -> Iterator[str]:
    # as the engine lists them: docker-py would ask for each, and another run may have swept it by then
    for row in client.api.images(filters={"dangling": True, "label": MAKER}):
        if not _abandoned((row["Labels"] or {}).get(MAKER, ""), "exited"):
            continue
        try:
            client.images.remove(row["Id"])
        except ImageNotFound:
            continue
        except APIError as error:
            # another run sweeps it at this moment, for which this engine may have a 500, or somebody uses it
            if error.status_code == 409 or not _is_there(client, row["Id"]):
                continue
            raise
        yield f"image {row['Id'][: len('sha256:') + 12]}"


def _is_there(client: docker.DockerClient, image: str) -> bool:
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    return True


def kept(client: docker.DockerClient, run_id: str) -> list[str]:
    """The names of the containers that a run's user asked to keep, sorted."""
    found = client.containers.list(all=True, filters={"label": f"{RUN}={run_id}"}, ignore_removed=True)
    return sorted(name for container in found if (name := str(container.name)).startswith(KEPT_PREFIX))


def _abandoned(owner: str, status: str) -> bool:
    if not owner:
        return False
    if is_gone(owner):
        return True
    other_boot = owner.partition(":")[0] != _machine()
    return other_boot and status in {"exited", "dead", "created"}
