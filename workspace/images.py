"""Finding the image of an instance: here under its official names first, then by pulling."""

from __future__ import annotations

from collections.abc import Callable

import docker
from docker.errors import APIError, ImageNotFound, NotFound

from workspace.errors import ImageMissingError


def official_names(instance_id: str, row_image: str | None = None) -> list[str]:
    """The names an instance's image may have, in the order in which they are tried.

    Args:
        instance_id: the official id.
        row_image: the `image` column of the instance's row, if it has one.
    """
    lower = instance_id.lower()
    names = [
        f"sweb.eval.x86_64.{instance_id}:latest",
        # a repository's name is lower case for the engine, whatever the id's is
        f"sweb.eval.x86_64.{lower}:latest",
        f"swebench/sweb.eval.x86_64.{lower.replace('__', '_1776_')}:latest",
        *([row_image] if row_image else []),
        # what the harness builds on machines of the other architecture
        f"sweb.eval.arm64.{lower}:latest",
    ]
    return list(dict.fromkeys(names))


def find_image(
    client: docker.DockerClient,
    instance_id: str,
    row_image: str | None,
    say: Callable[[str], None],
) -> str:
    """The name under which the engine has (or now pulled) the instance's image.

    Raises:
        ImageMissingError: it is not here and could not be pulled; every name tried is told.
    """
    names = official_names(instance_id, row_image)
    for name in names:
        if _is_here(client, name):
            return name
    why = "no name to pull"
    for name in names:
        if "/" not in name:  # names without a namespace are only ever built on the machine
            continue
        say(f"pulling {name}")
        try:
            client.images.pull(name)
        except (NotFound, ImageNotFound):
            why = "no such image in the registry"
        except APIError as error:
            why = str(error.explanation or error)
        else:
            return name
    raise ImageMissingError(
        f"no image for {instance_id}: looked for {', '.join(names)} and could not pull one ({why}). "
        "Pull or build the image under one of these names, then run the same command again."
    )


def _is_here(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    except APIError as error:
        if error.status_code == 400:  # a name with capitals is no reference at all
            return False
        raise
    return True
