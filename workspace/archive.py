"""Reading files out of a container through the engine, byte for byte, names included.

The engine streams tar archives of a path of a running, frozen or stopped container; no program inside the
container takes part in it, and links are resolved in the container's own scope, never the host's.
"""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast
from urllib.parse import quote

import docker
import requests
from docker.errors import create_api_error_from_http_exception
from docker.models.containers import Container

_SYMLINK = 1 << 27  # Go's os.ModeSymlink, which the engine's stat speaks
_DIRECTORY = 1 << 31  # Go's os.ModeDir


class _Stream(io.RawIOBase):
    """A file object over the engine's chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer)).cast("B")
        if not self._rest:
            self._rest = next(self._chunks, b"")
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@contextmanager
def open_archive(container: Container, path: str) -> Iterator[tarfile.TarFile]:
    """The archive of a path, to be read once from front to end.

    Names in it begin with the path's last component; bytes that are not UTF-8 arrive as surrogates
    (`os.fsencode` gives them back), and are given so in `path`.

    Raises:
        docker.errors.NotFound: there is no such path.
    """
    # an archive that is not read to its end would keep its connection
    with _ask("GET", container, path) as reply:
        _check(reply)
        raw = io.BufferedReader(_Stream(reply.iter_content(1 << 20)), 1 << 20)
        with tarfile.open(
            fileobj=cast(IO[bytes], raw), mode="r|", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            yield archive


def kind(container: Container, path: str) -> str | None:
    """What a path is, its last link not followed: "link", "directory", "other", or None if not there.

    Args:
        container: running, frozen or stopped.
        path: absolute, inside the container.
    """
    with _ask("HEAD", container, path) as reply:
        if reply.status_code == 404:
            return None
        _check(reply)
    stat = json.loads(base64.b64decode(reply.headers["X-Docker-Container-Path-Stat"]))
    if stat["mode"] & _SYMLINK:
        return "link"
    return "directory" if stat["mode"] & _DIRECTORY else "other"


def _ask(method: str, container: Container, path: str) -> requests.Response:
    """Ask the engine for a path; its client library can't say names that are not UTF-8."""
    api = client_of(container).api
    where = quote(os.fsencode(path), safe="/")
    url = f"{api.base_url}/v{api.api_version}/containers/{container.id}/archive?path={where}"
    return api.request(method, url, timeout=api.timeout, stream=True)


def _check(reply: requests.Response) -> None:
    try:
        reply.raise_for_status()
    except requests.HTTPError as error:
        raise create_api_error_from_http_exception(error) from error


def client_of(container: Container) -> docker.DockerClient:
    """The client that a container was made or found by."""
    client = container.client
    if client is None:
        raise ValueError("a container that no client knows")
    return client
