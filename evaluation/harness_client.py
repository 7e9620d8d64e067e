"""The Docker client for the official harness: the real one, except for how containers are created and read.

It also runs in the environment of swebench 4, so it may import only what that has too.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from typing import Any

import docker
from docker.errors import APIError
from docker.models.containers import Container, ExecResult

from common.container_exec import frames, has_ended

_NOT_RUN = frozenset({126, 127, 128})
"""Exit codes of a command that could not be started, or that could not start another one."""


PIDS = 4096
"""Processes and threads of an evaluation; builds with many cores need some hundred."""
MEMORY = "16g"
"""Of an evaluation, without swap. It is not the limit of workspaces, which may be low on purpose."""


def confinement(*, network: bool) -> dict[str, Any]:
    """How far an evaluation's container is confined: the code in it was written by an agent.

    The harness asks for SYS_ADMIN, with which root in a container can reach the host (under cgroup v1, by a release
    agent), and sets no limits. Nothing that the tests do needs the capability.

    Args:
        network: whether the container gets the engine's default network; otherwise it has loopback only.
    """
    limits = {"cap_add": [], "pids_limit": PIDS, "mem_limit": MEMORY, "memswap_limit": MEMORY}
    return limits if network else {**limits, "network_mode": "none"}


class HarnessClient:
    """The part of a Docker client that the harness uses."""

    def __init__(
        self,
        client: docker.DockerClient,
        labels: Mapping[str, str],
        image: str | None = None,
        confinement: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap a client.

        Args:
            client: of the engine.
            labels: for containers.
            image: replaces the one that the harness names; None does not.
            confinement: settings of containers that replace the harness's, from `confinement`.
        """
        self.images = client.images if image is None else _Images(client, image)
        self.containers = _Containers(client, labels, image, confinement or {})
        self.api = client.api


class _Images:
    """The engine's images, for a harness that needs a single one; it can't build, pull or remove any."""

    def __init__(self, client: docker.DockerClient, image: str) -> None:
        self._images = client.images
        self._image = image

    def get(self, _: str) -> Any:
        return self._images.get(self._image)


class _Containers:
    """The engine's containers, created with settings of ours."""

    def __init__(
        self,
        client: docker.DockerClient,
        labels: Mapping[str, str],
        image: str | None,
        confinement: Mapping[str, Any],
    ) -> None:
        self._confinement = dict(confinement)
        self._containers = client.containers
        self._labels = dict(labels)
        self._image = image
        self.created: list[str] = []

    def create(self, **settings: Any) -> Any:
        # without an init process the harness waits 15 seconds for a container to stop; the user's proxy
        # settings may contain a password; the harness's command is to run whatever the image's entry point is
        ours = {"init": True, "labels": self._labels, "use_config_proxy": False, "entrypoint": []}
        settings |= {**ours, **self._confinement}
        if self._image is not None:
            settings["image"] = self._image
            settings.pop("platform", None)  # it is the image's
        container = self._containers.create(**settings)
        self.created.append(str(container.id))
        return _Container(container)

    def get(self, name: str) -> Any:
        return self._containers.get(name)


class _Container:
    """A container whose commands always print UTF-8, because the harness decodes strictly.

    A command that can't be run because the container is ending raises an error, as in one that has ended. The
    engine may instead return the text of the failure as if the command had printed it.
    """

    def __init__(self, container: Container) -> None:
        engine: Any = container.client
        self._container = container
        self._own_api = engine.api
        self.client = _Engine(engine)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)

    def exec_run(self, cmd: str | list[str], *, detach: bool = False, **settings: Any) -> ExecResult:
        api = self.client.api
        execution = api.exec_create(self._container.id, cmd, **settings)["Id"]
        if detach:
            return ExecResult(None, api.exec_start(execution, detach=True))
        output = b"".join(api.exec_start(execution, stream=True))
        code = api.exec_inspect(execution)["ExitCode"]
        if code in _NOT_RUN and has_ended(self._own_api, self._container):
            raise APIError(f"the container has ended: {output.decode().strip()}")
        return ExecResult(code, output)


class _Engine:
    """The client of a container."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.api = _Api(client.api)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _Api:
    """The engine's API, with the output of commands complete and in UTF-8."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def exec_start(self, execution: str, *, stream: bool = False, **settings: Any) -> Any:
        if not stream:
            return self._api.exec_start(execution, **settings)
        return _readable(piece for _, piece in frames(self._api, execution))


def _readable(chunks: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()
