"""Containers for one script of ours each: made from an image, without a network, and removed at the end."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files

import docker
from docker.errors import NotFound
from docker.models.containers import Container

from workspace.errors import PreparationError


def script(name: str) -> str:
    """The text of one of the scripts beside this module."""
    return files("workspace").joinpath(name).read_text()


@contextmanager
def throwaway(
    client: docker.DockerClient,
    image: str,
    labels: Mapping[str, str],
    scripts: Mapping[str, str],
    *,
    platform: str | None = None,
) -> Iterator[Container]:
    """A container without a network for one script of ours, created and not started; removed at the end."""
    container = client.containers.create(
        image,
        platform=platform,
        use_config_proxy=False,  # a proxy of the user's may carry a password
        entrypoint=["/bin/sh"],
        # the script's name and arguments come with the start, see `run_script`
        command=["-c", "exec /bin/sh $(cat /clawbench/command)"],
        network_mode="none",
        labels=dict(labels),
        user="root",
        working_dir="/",
    )
    try:
        put_files(container, "/", {f"clawbench/{name}": text.encode() for name, text in scripts.items()})
        yield container
    finally:
        with suppress(NotFound):
            container.remove(force=True, v=True)


def run_script(container: Container, command: Sequence[str]) -> list[str]:
    """Start a `throwaway` container with a script and its arguments, which hold no spaces.

    Returns:
        the lines of its output.

    Raises:
        PreparationError: it failed, with the end of what it said.
    """
    put_files(container, "/", {"clawbench/command": " ".join(command).encode()})
    container.start()
    code = container.wait()["StatusCode"]
    output = container.logs(stdout=True, stderr=True).decode(errors="replace")
    if code != 0:
        told = [line.removeprefix("error ") for line in output.splitlines() if line.startswith("error ")]
        raise PreparationError(told[-1] if told else f"{command[0]} failed ({code}): {output[-600:].strip()}")
    return container.logs(stdout=True, stderr=False).decode(errors="replace").splitlines()


def put_files(container: Container, folder: str, contents: Mapping[str, bytes], mode: int = 0o644) -> None:
    """Write files below a folder of a container, as root, making folders on the way."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mode = mode
            tar.addfile(info, io.BytesIO(data))
    container.put_archive(folder, buffer.getvalue())
