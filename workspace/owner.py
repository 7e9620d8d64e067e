"""Who owns a container? A label names the process that made it; the next run removes what has lost its owner.

A process is identified by machine, pid and start time. So neither a reused pid nor another machine (or a container
with processes of its own) that shares the engine is mistaken for an owner that has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import docker
from docker.errors import APIError, NotFound

from common.processes import is_gone, machine, this_process

OWNER = "clawbench.owner"
RUN = "clawbench.run"
CASE = "clawbench.case"
MAKER = "clawbench.maker"
"""Of an image that has no name yet: the process that will name it."""
KEPT_PREFIX = "kept."
"""The beginning of the name of a container that a user asked to keep."""


def labels(run_id: str, case_id: str = "") -> dict[str, str]:
    """The labels for a container of this process."""
    return {OWNER: this_process(), RUN: run_id, CASE: case_id}


def sweep(client: docker.DockerClient) -> list[str]:
    """Remove the containers and the unnamed images whose owners have ended, except for kept containers.

    Returns:
        the kind and name of each.
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
            if error.status_code == 409:  # another run is removing it
                continue
            raise
        yield f"container {container.name}"


def _sweep_images(client: docker.DockerClient) -> Iterator[str]:
    # docker-py's own list asks for each image, which another run may have removed by then
    for row in client.api.images(filters={"dangling": True, "label": MAKER}):
        if not _abandoned((row["Labels"] or {}).get(MAKER, ""), "exited"):
            continue
        try:
            client.images.remove(row["Id"])
        except APIError as error:
            # somebody uses it, or another run has removed it, which an engine may also report as a 500
            if error.status_code == 409 or row["Id"] not in client.api.images(quiet=True, all=True):
                continue
            raise
        yield f"image {row['Id'][: len('sha256:') + 12]}"


def kept(client: docker.DockerClient, run_id: str) -> list[str]:
    """The names of the containers that a run's user asked to keep, sorted."""
    found = client.containers.list(all=True, filters={"label": f"{RUN}={run_id}"}, ignore_removed=True)
    return sorted(name for container in found if (name := str(container.name)).startswith(KEPT_PREFIX))


def _abandoned(owner: str, status: str) -> bool:
    if not owner:
        return False
    if is_gone(owner):
        return True
    other_boot = owner.partition(":")[0] != machine()
    return other_boot and status in {"exited", "dead", "created"}
