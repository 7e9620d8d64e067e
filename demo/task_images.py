"""The images of the embedded task set, built when they are first needed.

There are three layers: one base for all, one image per language on it (so that the first Python case need not wait
for a Java compiler), and one image per instance on that, under the name that the official harness uses. Any
number of processes may call `ensure_image` at once, and a killed call loses only its own work.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path

import docker
from docker.errors import DockerException

from demo.base_image import build_base
from demo.image_build import ImageBuildError, Recipe, Say, build, exclusive, is_current, recipe

__all__ = ["TASK_REPO", "ImageBuildError", "embedded_ids", "ensure_image", "image_name", "task_recipe"]

TASK_REPO = Path(__file__).parent
"""The task repository in the official format: `sweb.yaml` and `tasks/`."""

RECIPES = TASK_REPO / "recipes"
INSTANCE_LIST = TASK_REPO.parent / "instance_lists" / "demo.tsv"
LANGUAGE_IMAGE = "clawbench/demo-{}"


def embedded_ids() -> list[str]:
    """The ids of the embedded set, in the order in which they are run."""
    rows = INSTANCE_LIST.read_text(encoding="utf-8").splitlines()[1:]
    return [row.split("\t", 1)[0] for row in rows if row]


def image_name(instance_id: str) -> str:
    """The official name of an instance's image on this machine's architecture."""
    architecture = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"
    return f"sweb.eval.{architecture}.{instance_id}:latest"


def ensure_image(
    client: docker.DockerClient,
    instance_id: str,
    *,
    cache: Path,
    say: Say,
    labels: Mapping[str, str] | None = None,
) -> bool:
    """Build an instance's image unless there is one made from exactly the same files.

    Args:
        client: the engine.
        instance_id: of the embedded set.
        cache: a folder for locks and downloaded packages, which all processes that may build at once share.
        say: gets progress.
        labels: for the images. Their containers inherit them, so they must not name a run.

    Returns:
        whether it was built.

    Raises:
        ImageBuildError: it could not be built; the message ends with what to do next.
    """
    folder = TASK_REPO / "tasks" / instance_id
    if not (folder / "Dockerfile").is_file():
        raise ImageBuildError(f"{instance_id} is not in the embedded set: {', '.join(embedded_ids())}")
    marks = dict(labels or {})
    try:
        return _ensure_task(client, instance_id, cache, say, marks)
    except DockerException as error:
        raise ImageBuildError(
            f"The Docker engine gave up on the image of {instance_id}: {error}. "
            "Check that it runs (docker info) and has room on its disk (docker system df), then run again."
        ) from error


def task_recipe(instance_id: str) -> Recipe:
    """The recipe of an instance's image: its task folder, on its language's image."""
    folder = TASK_REPO / "tasks" / instance_id
    below = language_recipe(language_of(folder))
    return recipe(image_name(instance_id), folder, below=below.digest)


def language_recipe(language: str) -> Recipe:
    """The recipe of a language's image: its test tools, on the common base."""
    tag = LANGUAGE_IMAGE.format(language) + ":latest"
    return recipe(tag, RECIPES / language, RECIPES / "plant_history.py", below=base_recipe().digest)


def base_recipe() -> Recipe:
    """The recipe of the common base, without its root file system."""
    return recipe(LANGUAGE_IMAGE.format("base") + ":latest", RECIPES / "base")


def language_of(folder: Path) -> str:
    """The language whose image a task's Dockerfile starts from."""
    match = re.search(r"^FROM clawbench/demo-([a-z]+)$", (folder / "Dockerfile").read_text(), re.MULTILINE)
    if match is None or not (RECIPES / match[1] / "Dockerfile").is_file():
        raise ImageBuildError(f"{folder}/Dockerfile must start from one of the images in {RECIPES}")
    return match[1]


def _ensure_task(
    client: docker.DockerClient, instance_id: str, cache: Path, say: Say, labels: Mapping[str, str]
) -> bool:
    wanted = task_recipe(instance_id)
    if is_current(client, wanted):
        return False
    with exclusive(cache, wanted.tag, say):
        if is_current(client, wanted):
            return False
        _ensure_language(client, language_of(TASK_REPO / "tasks" / instance_id), cache, say, labels)
        build(client, wanted, say, labels=labels)
        return True


def _ensure_language(
    client: docker.DockerClient, language: str, cache: Path, say: Say, labels: Mapping[str, str]
) -> None:
    wanted = language_recipe(language)
    with exclusive(cache, wanted.tag, say):
        if is_current(client, wanted):
            return
        base = base_recipe()
        with exclusive(cache, base.tag, say):
            if not is_current(client, base):
                build_base(client, base, cache=cache, say=say, labels=labels)
        build(client, wanted, say, labels=labels)
