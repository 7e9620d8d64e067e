"""The image of an instance: under which names it may be here, and how it is had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import docker

from engine.pulling import PullError
from workspace.errors import ImageMissingError
from workspace.pulls import Pulls


def official_names(instance_id: str, row_image: str | None = None) -> list[str]:
    """The names an instance's image may have here, in the order in which they are looked for.

    Args:
        instance_id: the official id.
        row_image: the `image` column of the instance's row, if it has one.
    """
    lower = instance_id.lower()
    names = [
        f"sweb.eval.x86_64.{instance_id}:latest",
        # a repository's name is lower case for the engine, whatever the id's is
        f"sweb.eval.x86_64.{lower}:latest",
        _published(instance_id),
        *([row_image] if row_image else []),
        # what the harness builds on machines of the other architecture
        f"sweb.eval.arm64.{lower}:latest",
    ]
    return list(dict.fromkeys(names))


def name_to_pull(instance_id: str, row_image: str | None = None) -> str:
    """The name under which an instance's image is pulled: the row's, where that can be on a registry."""
    # names without a namespace are only ever built on the machine
    return row_image if row_image and "/" in row_image else _published(instance_id)


def _published(instance_id: str) -> str:
    return f"swebench/sweb.eval.x86_64.{instance_id.lower().replace('__', '_1776_')}:latest"


def image_here(pulls: Pulls, instance_id: str, row_image: str | None) -> str | None:
    """The name under which the engine has the instance's image; None where it has not."""
    return next((name for name in official_names(instance_id, row_image) if pulls.is_here(name)), None)


def find_image(pulls: Pulls, instance_id: str, row_image: str | None, say: Callable[[str], None]) -> str:
    """The name under which the engine has (or now pulled) the instance's image.

    Raises:
        ImageMissingError: it is not here and could not be pulled; every name tried is told.
        OSError: with ENOSPC, there is no room for it.
    """
    here = image_here(pulls, instance_id, row_image)
    if here is not None:
        return here
    name = name_to_pull(instance_id, row_image)
    try:
        pulls.pull(name, say)
    except PullError as error:
        looked_for = ", ".join(official_names(instance_id, row_image))
        raise ImageMissingError(
            f"no image for {instance_id}: looked for {looked_for} and could not pull {name} ({error}). "
            "Pull or build the image under one of these names, then run the same command again."
        ) from error
    return name


def described(client: docker.DockerClient, name: str) -> dict[str, Any]:
    """An image as manifests name it: what it is here, what its registry calls it, and what it runs on.

    Raises:
        ImageNotFound: it is not here.
    """
    image = client.images.get(name)
    return {
        "name": name,
        "id": image.id,
        "digests": sorted(image.attrs.get("RepoDigests") or []),
        "platform": f"{image.attrs['Os']}/{image.attrs['Architecture']}",
    }
