"""Files into and out of a container through the engine, byte for byte, names included.

The engine streams tar archives of a path of a running, frozen or stopped container. No program inside the
container takes part in it, and links are resolved inside the container, never on the host.
"""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

import docker
import requests
from docker.errors import create_api_error_from_http_exception
from docker.models.containers import Container

_SYMLINK = 1 << 27  # Go's os.ModeSymlink and os.ModeDir, as the engine reports them
_DIRECTORY = 1 << 31


@contextmanager
def open_archive(container: Container, path: str) -> Iterator[tarfile.TarFile]:
    """The archive of a path, to be read once from front to end.

    Names in it begin with the path's last component. Bytes that are not UTF-8 arrive as surrogates, which
    `os.fsencode` turns back; `path` may have them as well.

    Raises:
        docker.errors.NotFound: there is no such path.
    """
    # closed even if the archive is not read to its end
    with _request("GET", container, path) as reply:
        _check(reply)
        with tarfile.open(fileobj=reply.raw, mode="r|", encoding="utf-8", errors="surrogateescape") as archive:
            yield archive


def kind(container: Container, path: str) -> str | None:
    """What a path is, without following a link at its end: "link", "directory", "other", or None if it is missing.

    Args:
        container: running, frozen or stopped.
        path: absolute, inside the container.
    """
    with _request("HEAD", container, path) as reply:
        if reply.status_code == 404:
            return None
        _check(reply)
    stat = json.loads(base64.b64decode(reply.headers["X-Docker-Container-Path-Stat"]))
    if stat["mode"] & _SYMLINK:
        return "link"
    return "directory" if stat["mode"] & _DIRECTORY else "other"


def put_files(container: Container, folder: str, contents: Mapping[str, bytes], mode: int = 0o644) -> None:
    """Write files below a folder of a container, owned by root; missing folders are made."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mode = mode
            tar.addfile(info, io.BytesIO(data))
    container.put_archive(folder, buffer.getvalue())


def client_of(container: Container) -> docker.DockerClient:
    """The client that a container was made or found by."""
    client = container.client
    if client is None:
        raise ValueError("a container that no client knows")
    return client


def _request(method: str, container: Container, path: str) -> requests.Response:
    """Ask the engine for a path; docker-py can't ask for names that are not UTF-8."""
    api = client_of(container).api
    where = quote(os.fsencode(path), safe="/")
    url = f"{api.base_url}/v{api.api_version}/containers/{container.id}/archive?path={where}"
    headers = {"Accept-Encoding": "identity"}  # the raw stream is read
    return api.request(method, url, timeout=api.timeout, stream=True, headers=headers)


def _check(reply: requests.Response) -> None:
    try:
        reply.raise_for_status()
    except requests.HTTPError as error:
        raise create_api_error_from_http_exception(error) from error
