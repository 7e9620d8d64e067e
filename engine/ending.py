"""Whether a container has ended, asked when a command in it was ended.

The engine knows of a container's end some time after the processes in it do, on a busy machine a long time. Until
then it says that the container runs, and a command that ended with its container looks as if it alone had ended.
"""

from __future__ import annotations

import time

from docker.api.client import APIClient
from docker.errors import APIError
from docker.models.containers import Container

_PATIENCE = 30.0
"""Seconds that the engine is waited for, where no command can be begun for another reason."""
_LOOK = 0.1


def has_ended(api: APIClient, container: Container) -> bool:
    """Whether a container has ended, or is about to; its attributes are up to date then (raises NotFound).

    One in which a command can be begun goes on: where the first process of a PID namespace is gone, the kernel
    lets no other begin (pid_namespaces(7)).

    Args:
        api: the engine.
        container: whose command was ended.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        container.reload()
        if not container.attrs["State"]["Running"]:
            return True
        if _can_begin(api, container) or time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)


def _can_begin(api: APIClient, container: Container) -> bool:
    try:
        execution = api.exec_create(container.id, ["/bin/sh", "-c", ":"], user="root")["Id"]
        api.exec_start(execution, detach=True)
    except APIError:
        return False
    return True
