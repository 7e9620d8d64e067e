"""Containers that run one script of ours: made from an image, without a network, and removed at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files

import docker
from docker.errors import NotFound
from docker.models.containers import Container

from workspace.container_files import put_files
from workspace.workspace_errors import PreparationError


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
    mounts: Mapping[str, str] | None = None,
) -> Iterator[Container]:
    """A container without a network, created but not started; it is removed at the end.

    Args:
        client: the engine.
        image: name or id.
        labels: for the container.
        scripts: texts by name, put into `/clawbench`.
        platform: such as `linux/amd64`; None is the image's own.
        mounts: folders of the engine's host by folder in the container, read-only.
    """
    container = client.containers.create(
        image,
        platform=platform,
        use_config_proxy=False,  # the user's proxy settings may contain a password
        entrypoint=["/bin/sh"],
        # `run_script` writes the script's name and arguments before the start
        command=["-c", "exec /bin/sh $(cat /clawbench/command)"],
        network_mode="none",
        labels=dict(labels),
        user="root",
        working_dir="/",
        volumes=[f"{source}:{target}:ro" for target, source in (mounts or {}).items()],
    )
    try:
        put_files(container, "/", {f"clawbench/{name}": text.encode() for name, text in scripts.items()})
        yield container
    finally:
        with suppress(NotFound):
            container.remove(force=True, v=True)


def run_script(container: Container, command: Sequence[str]) -> list[str]:
    """Run a script in a `throwaway` container.

    Args:
        container: not started yet.
        command: the script and its arguments, which contain no spaces.

    Returns:
        the lines of its standard output.

    Raises:
        PreparationError: the script failed; the message has its last error line, or the end of its output.
    """
    put_files(container, "/", {"clawbench/command": " ".join(command).encode()})
    container.start()
    code = container.wait()["StatusCode"]
    # the engine keeps no order between the two streams, so the result is read from stdout alone
    if code != 0:
        output = container.logs(stdout=True, stderr=True).decode(errors="replace")
        told = [line.removeprefix("error ") for line in output.splitlines() if line.startswith("error ")]
        raise PreparationError(told[-1] if told else f"{command[0]} failed ({code}): {output[-600:].strip()}")
    return container.logs(stdout=True, stderr=False).decode(errors="replace").splitlines()
