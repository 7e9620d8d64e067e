"""A case's two containers: the workspace, whose only network is loopback, and the forwarder.

The forwarder is the only way out. It shares the workspace's network namespace, listens on loopback there, and
passes the bytes on to the case's gateway socket, which only the forwarder has mounted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from workspace.owner import KEPT_PREFIX
from workspace.prepare import WORKDIR
from workspace.running import Workspace
from workspace.throwaway import script
from workspace.workspace_errors import WorkspaceError

GATEWAY_PORT = 41411
_SOCKET_MOUNT = "/gateway"
_PROXIES = [
    name for kind in ("http", "https", "ftp", "all", "no") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
]
_NEEDED_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"]
"""What package managers, test suites and `su` need; none reaches beyond the container."""


@dataclass(frozen=True)
class Limits:
    """What a workspace may use."""

    pids: int = 300
    memory: str = "8g"
    """In Docker's notation; swap is not added to it."""

    @classmethod
    def from_environment(cls) -> Limits:
        """The limits in CLAW_PIDS_LIMIT and CLAW_CONTAINER_MEMORY, or the defaults.

        Raises:
            ValueError: one of them is malformed.
        """
        pids = os.environ.get("CLAW_PIDS_LIMIT", str(cls.pids))
        memory = os.environ.get("CLAW_CONTAINER_MEMORY", cls.memory).lower()
        if not re.fullmatch("0*[1-9][0-9]*", pids):
            raise ValueError(f"CLAW_PIDS_LIMIT={pids!r}: must be a whole number above 0")
        if not re.fullmatch("0*[1-9][0-9]*[bkmg]?", memory):  # to the engine, 0 means no limit
            raise ValueError(f"CLAW_CONTAINER_MEMORY={memory!r}: must be like 8g, 512m or bytes")
        return cls(int(pids), memory)


class ContainerImage(Protocol):
    """The image of a workspace: a `PreparedImage`, or any other one if no agent works in it."""

    @property
    def image_id(self) -> str:
        """Its name or id."""

    @property
    def platform(self) -> str | None:
        """The platform of its containers, if one was asked for."""


@dataclass
class Keep:
    """Whether a workspace is kept after its case; may be set while the case runs."""

    keep: bool = False


@contextmanager
def open_workspace(
    client: docker.DockerClient,
    prepared: ContainerImage,
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
    """A fresh workspace, which is removed at the end whatever happened.

    Args:
        client: the engine.
        prepared: the image.
        name: of the container; the forwarder's name is derived from it.
        labels: of the run and the case.
        limits: pids and memory.
        gateway_socket: the case's socket, alone in its folder, which is mounted into the forwarder. None: no
            way out.
        mounts: folders of the host by folder in the container, read-only.
        environment: of every process in the workspace.
        keep: says at the end whether to keep the workspace for inspection.
        egress: open the network, if the user explicitly asked for it.

    Raises:
        WorkspaceError: the engine could not start the containers.
    """
    with ExitStack() as stack:
        container = _started(
            client,
            prepared,
            stack,
            keep,
            name=name,
            labels=labels,
            # an init process reaps what agents leave behind
            init=True,
            entrypoint=["/bin/sh", "-c", "while :; do sleep 3600 & wait; done"],
            network_mode="bridge" if egress else "none",
            pids_limit=limits.pids,
            mem_limit=limits.memory,
            memswap_limit=limits.memory,
            cap_add=_NEEDED_CAPABILITIES,
            working_dir=WORKDIR,
            # a proxy in the image's environment would get the claw's requests to the gateway; None unsets
            environment={**dict.fromkeys(_PROXIES), **environment},
            hostname="workspace",
            volumes=[f"{source}:{target}:ro" for target, source in mounts.items()],
        )
        forwarder = None
        if gateway_socket is not None:
            forwarder = _started(
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
                # the socket's owner: without capabilities, root may not open what is another user's
                user=f"{os.getuid()}:{os.getgid()}",
                volumes={str(gateway_socket.parent): {"bind": _SOCKET_MOUNT, "mode": "rw"}},
            )
            _wait_until_ready(forwarder)
        yield Workspace(container, forwarder)


def _started(
    client: docker.DockerClient, prepared: ContainerImage, stack: ExitStack, keep: Keep, **settings: object
) -> Container:
    try:
        container = client.containers.create(
            prepared.image_id,
            platform=prepared.platform,
            use_config_proxy=False,  # the user's proxy settings may contain a password
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            **settings,  # type: ignore[arg-type]
        )
        stack.callback(_remove, container, keep)
        container.start()
    except APIError as error:
        raise WorkspaceError(f"the engine could not start a container: {error.explanation}") from error
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
        if error.status_code != 409:  # another process is removing it
            raise


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
