"""One case's containers: the workspace with no network but loopback, and the forwarder that shares it.

The forwarder is the one way out: it listens on loopback inside the workspace's network namespace and hands the
bytes to this case's gateway socket, which only it has mounted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from workspace.errors import WorkspaceError
from workspace.owner import KEPT_PREFIX
from workspace.prepare import WORKDIR, PreparedImage
from workspace.running import Workspace
from workspace.throwaway import script

GATEWAY_PORT = 41411
_SOCKET_MOUNT = "/gateway"
_NEEDED_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"]
"""What package managers, test suites and `su` need of root; nothing that reaches past the container."""


@dataclass(frozen=True)
class Limits:
    """What a workspace may use."""

    pids: int = 300
    memory: str = "8g"
    """As Docker writes it; there is no swap beyond it."""

    @classmethod
    def from_environment(cls) -> Limits:
        """The limits that CLAW_PIDS_LIMIT and CLAW_CONTAINER_MEMORY set, defaults elsewhere.

        Raises:
            ValueError: one of them is not a limit.
        """
        pids = os.environ.get("CLAW_PIDS_LIMIT", str(cls.pids))
        memory = os.environ.get("CLAW_CONTAINER_MEMORY", cls.memory).lower()
        if not re.fullmatch("0*[1-9][0-9]*", pids):
            raise ValueError(f"CLAW_PIDS_LIMIT={pids!r}: must be a whole number above 0")
        if not re.fullmatch("0*[1-9][0-9]*[bkmg]?", memory):  # for the engine, 0 is no limit
            raise ValueError(f"CLAW_CONTAINER_MEMORY={memory!r}: must be like 8g, 512m or bytes")
        return cls(int(pids), memory)


@dataclass
class Keep:
    """Whether a workspace stays when its case is over; set while the case runs."""

    keep: bool = False


@contextmanager
def open_workspace(
    client: docker.DockerClient,
    prepared: PreparedImage,
    *,
    name: str,
    labels: Mapping[str, str],
    limits: Limits,
    gateway_socket: Path | None,
    mounts: Mapping[str, str],
    environment: Mapping[str, str],
    keep: Keep,
    egress: bool = False,
) -> Iterator[Workspace]:
    """A fresh workspace, removed at the end whatever happened.

    Args:
        client: the engine.
        prepared: the image.
        name: the container's name; the forwarder's is made from it.
        labels: of the run and the case.
        limits: pids and memory.
        gateway_socket: the case's socket; alone in its folder, which the forwarder gets. None: no way out.
        mounts: host folder by container folder, read-only.
        environment: of every process in it.
        keep: asked at the end whether the workspace stays for looking into.
        egress: an open network, for users who said so aloud.

    Raises:
        WorkspaceError: the engine could not start it.
    """
    with ExitStack() as stack:
        container = _create(
            client,
            prepared,
            stack,
            keep,
            name=name,
            labels=labels,
            # an init reaps what agents leave behind
            init=True,
            entrypoint=["/bin/sh", "-c", "while :; do sleep 3600 & wait; done"],
            network_mode="bridge" if egress else "none",
            pids_limit=limits.pids,
            mem_limit=limits.memory,
            memswap_limit=limits.memory,
            cap_add=_NEEDED_CAPABILITIES,
            working_dir=WORKDIR,
            environment=dict(environment),
            hostname="workspace",
            volumes=[f"{source}:{target}:ro" for target, source in mounts.items()],
        )
        _start(container)
        forwarder = None
        if gateway_socket is not None:
            forwarder = _create(
                client,
                prepared,
                stack,
                Keep(),
                name=f"{name}-forwarder",
                labels=labels,
                init=True,
                entrypoint=[
                    "perl",
                    "-e",
                    script("forwarder.pl"),
                    str(GATEWAY_PORT),
                    f"{_SOCKET_MOUNT}/{gateway_socket.name}",
                ],
                network_mode=f"container:{container.id}",
                pids_limit=200,
                mem_limit="512m",
                memswap_limit="512m",
                read_only=True,
                working_dir="/",
                # the socket's owner, because without capabilities root may not open another's
                user=f"{os.getuid()}:{os.getgid()}",
                volumes={str(gateway_socket.parent): {"bind": _SOCKET_MOUNT, "mode": "rw"}},
            )
            _start(forwarder)
            _wait_until_ready(forwarder)
        yield Workspace(container, forwarder)


def _create(
    client: docker.DockerClient, prepared: PreparedImage, stack: ExitStack, keep: Keep, **settings: object
) -> Container:
    try:
        container = client.containers.create(
            prepared.image_id,
            platform=prepared.platform,
            use_config_proxy=False,  # a proxy of the user's may carry a password
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            **settings,  # type: ignore[arg-type]
        )
    except APIError as error:
        raise WorkspaceError(f"the engine could not create a container: {error.explanation}") from error
    stack.callback(_remove, container, keep)
    return container


def _remove(container: Container, keep: Keep) -> None:
    try:
        if keep.keep:
            Workspace(container).end()
            container.rename(f"{KEPT_PREFIX}{container.name}.{container.short_id}")
        else:
            container.remove(force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # someone else is removing it
            raise


def _start(container: Container) -> None:
    try:
        container.start()
    except APIError as error:
        raise WorkspaceError(f"the engine could not start a container: {error.explanation}") from error


def _wait_until_ready(forwarder: Container) -> None:
    said = b""
    for chunk in forwarder.logs(stream=True, follow=True):
        said += chunk
        if b"ready\n" in said:
            return
    raise WorkspaceError(
        f"the forwarder to the gateway did not start: {said.decode(errors='replace').strip()[-300:]}. "
        "The instance's image must have perl, as every Debian and Ubuntu image has."
    )
