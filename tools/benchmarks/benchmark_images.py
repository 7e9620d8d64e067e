"""Images with generated repositories, for measuring; removed when the benchmark is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import docker

import demo.task_images
from adapters.runtimes import default_home
from workspace.owner import labels
from workspace.throwaway import run_script, throwaway

MARKS = labels("benchmark")


def base_image(client: docker.DockerClient, say: Callable[[str], None]) -> str:
    """An image with git and python3: that of an embedded task, built where it is missing."""
    instance_id = demo.task_images.embedded_ids()[0]
    demo.task_images.ensure_image(client, instance_id, cache=default_home(), say=say)
    return demo.task_images.image_name(instance_id)


@contextmanager
def image_with(
    client: docker.DockerClient, base: str, name: str, scripts: Mapping[str, str], command: list[str]
) -> Iterator[tuple[str, list[str]]]:
    """An image made by running a script in a container of another one.

    Yields:
        the image's name, and the lines that the script printed.
    """
    tag = f"clawbench-benchmark:{name}"
    with throwaway(client, base, MARKS, scripts) as container:
        lines = run_script(container, command)
        container.commit("clawbench-benchmark", name)
    try:
        yield tag, lines
    finally:
        client.images.remove(tag, force=True)
