"""The image of an instance: the names that it may have on this engine, and how to get it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import docker

from common.image_pull import PullError
from workspace.pulls import Pulls
from workspace.workspace_errors import ImageMissingError


def official_names(instance_id: str, row_image: str | None = None) -> list[str]:
    """The names that an instance's image may have on this engine, in the order in which they are tried.

    Args:
        instance_id: the official id.
        row_image: the `image` column of the instance's row, if it has one.
    """
    lower = instance_id.lower()
    names = [
        f"sweb.eval.x86_64.{instance_id}:latest",
        # the engine takes no capitals in a repository's name, but an id may have some
        f"sweb.eval.x86_64.{lower}:latest",
        _published(instance_id),
        *([row_image] if row_image else []),
        # as the harness builds it on ARM machines
        f"sweb.eval.arm64.{lower}:latest",
    ]
    return list(dict.fromkeys(names))


def name_to_pull(instance_id: str, row_image: str | None = None) -> str:
    """The name to pull an instance's image by: the row's, if a registry can have it."""
    # images without a namespace are only ever built locally
    return row_image if row_image and "/" in row_image else _published(instance_id)


def _published(instance_id: str) -> str:
    return f"swebench/sweb.eval.x86_64.{instance_id.lower().replace('__', '_1776_')}:latest"


def image_here(pulls: Pulls, instance_id: str, row_image: str | None) -> str | None:
    """The name under which the engine has the instance's image; None if it has none."""
    return next((name for name in official_names(instance_id, row_image) if pulls.is_here(name)), None)


def find_image(pulls: Pulls, instance_id: str, row_image: str | None, say: Callable[[str], None]) -> str:
    """The name under which the engine has the instance's image, after pulling it if necessary.

    Raises:
        ImageMissingError: the engine has none and could not pull one; the message has every name tried.
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
    """How manifests describe an image: its name and id, its digests in registries, and its platform.

    Raises:
        ImageNotFound: the engine has no image of this name.
    """
    image = client.images.get(name)
    return {
        "name": name,
        "id": image.id,
        "digests": sorted(image.attrs.get("RepoDigests") or []),
        "platform": f"{image.attrs['Os']}/{image.attrs['Architecture']}",
    }
