"""Reading files out of a container through the engine, byte for byte, names included.

The engine streams tar archives of a path of a running, frozen or stopped container; no program inside the
container takes part in it, and links are resolved in the container's own scope, never the host's.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast
from urllib.parse import quote

import docker
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
    (`os.fsencode` gives them back).

    Raises:
        docker.errors.NotFound: there is no such path.
    """
    chunks, _ = container.get_archive(path, chunk_size=1 << 20)
    raw = io.BufferedReader(_Stream(iter(chunks)), 1 << 20)
    try:
        with tarfile.open(
            fileobj=cast(IO[bytes], raw), mode="r|", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            yield archive
    finally:
        # an archive that is not read to its end would keep its connection
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def kind(container: Container, path: str) -> str | None:
    """What a path is, its last link not followed: "link", "directory", "other", or None if not there.

    Args:
        container: running, frozen or stopped.
        path: absolute, inside the container.
    """
    api = client_of(container).api
    url = f"{api.base_url}/v{api.api_version}/containers/{container.id}/archive?path={quote(path)}"
    reply = api.head(url, timeout=api.timeout)
    if reply.status_code == 404:
        return None
    reply.raise_for_status()
    stat = json.loads(base64.b64decode(reply.headers["X-Docker-Container-Path-Stat"]))
    if stat["mode"] & _SYMLINK:
        return "link"
    return "directory" if stat["mode"] & _DIRECTORY else "other"


def client_of(container: Container) -> docker.DockerClient:
    """The client that a container was made or found by."""
    client = container.client
    if client is None:
        raise ValueError("a container that no client knows")
    return client
