"""The images of a case: found, pulled, built or made, and written down where they are the suite's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import demo.images
from clawbench.bench import Bench
from evaluation.instances import Instance
from evaluation.lists import ListedInstance
from workspace.images import find_image
from workspace.prepare import PreparedImage, prepare

Say = Callable[[str], None]


def source_image(bench: Bench, listed: ListedInstance, instance: Instance, say: Say) -> str:
    """The name of an instance's image, which is pulled where it is not here; an embedded task's is built.

    Raises:
        WorkspaceError, ImageBuildError: it can't be had.
        OSError: with ENOSPC, the disk is full.
    """
    if not listed.embedded:
        return find_image(bench.pulls, listed.instance_id, instance.image, say)
    name = demo.images.image_name(listed.instance_id)
    if demo.images.ensure_image(bench.client, listed.instance_id, cache=bench.home, say=say):
        bench.inventory.note(name)
    return name


def prepared_image(
    bench: Bench, listed: ListedInstance, instance: Instance, *, source: str, labels: Mapping[str, str], say: Say
) -> PreparedImage:
    """The image that claws and the judge get, made from the instance's own (raises PreparationError)."""
    return prepare(
        bench.client,
        source,
        instance_id=listed.instance_id,
        base_commit=instance.base_commit,
        locks=bench.home / "locks",
        labels=labels,
        say=say,
        # the embedded tasks' images are built here, for the engine's own
        platform=None if listed.embedded else bench.settings.platform,
        made=partial(bench.inventory.note, source=source),
    )
