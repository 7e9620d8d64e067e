"""Whether the rows of the instances, the harness that judges them, and their images can be had."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import docker
from docker.errors import APIError, DockerException, NotFound
from requests.exceptions import RequestException

import demo.images
from clawbench.doctor.asked import Asked
from clawbench.doctor.engine import Engine
from clawbench.doctor.findings import Finding, fault, ok, warning
from clawbench.recordings import RecordingError, require_recordings
from clawbench.session import taken_from
from demo.building import is_current
from evaluation.harness import EvaluationError, harness_version
from evaluation.instances import InstanceError
from evaluation.lists import ListedInstance
from evaluation.rows import read_row, take_rows
from workspace.images import name_to_pull, official_names

_AT_ONCE = 3
_SHOWN = 5


def rows(asked: Asked) -> Iterator[Finding]:
    """Take the rows, as the run does, and find the harness that judges them."""
    settings = asked.settings
    if asked.offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read where the hub's library is imported, further on
    if settings.recordings is not None:
        try:
            require_recordings(settings.recordings, asked.cases)
        except RecordingError as error:
            yield fault("recordings", str(error), "record them (--record), or select less")
    try:
        taken = take_rows(
            asked.instances,
            demo=demo.images.TASK_REPO,
            into=asked.rows,
            dataset=settings.dataset,
            revisions=settings.revisions,
        )
    except InstanceError as error:
        yield fault("rows", str(error), "mend them, or give others by --dataset")
        return
    sources = [f"{len(found.instances)} of {found.source.name}" for found in taken.values()]
    embedded = len(asked.instances) - len(asked.real)
    yield ok("rows", ", ".join([*sources, *([f"{embedded} embedded"] if embedded else [])]))
    try:
        harnesses = {str(taken_from(found, asked.home)["harness"]) for found in taken.values()}
    except (EvaluationError, InstanceError) as error:
        yield fault("harness", str(error), "clawbench install swebench4, or rows of swebench 5's shape")
        return
    yield ok("harness", ", ".join(sorted(harnesses or {harness_version()})))


@dataclass(frozen=True)
class Images:
    """Which images of the selected instances are not here."""

    here: int
    missing: Sequence[ListedInstance]
    """Of real instances: they would be pulled."""
    unbuilt: Sequence[ListedInstance]
    """Of embedded tasks: they would be built."""


def images_of(asked: Asked, engine: Engine) -> Images:
    """Look for all of them at the engine, in one question for the real ones (raises DockerException, OSError)."""
    client = engine.client
    unbuilt = [
        listed
        for listed in asked.instances
        if listed.embedded and not is_current(client, demo.images.task_recipe(listed.instance_id))
    ]
    missing: list[ListedInstance] = []
    if asked.real:
        tags = {tag for image in client.api.images() for tag in image.get("RepoTags") or []}
        missing = [listed for listed in asked.real if not tags & {_tagged(name) for name in _names(asked, listed)}]
    return Images(len(asked.instances) - len(unbuilt) - len(missing), missing, unbuilt)


def images(asked: Asked, engine: Engine, found: Images) -> Iterator[Finding]:
    """Tell of the images, and ask the registry of some that are not here.

    The engine's question (`GET /distribution/{name}/json`) gets the manifest, which counts as a pull where a
    registry limits these (Docker Hub: 100 in six hours without an account). So it is asked of a few only.
    """
    total = len(asked.instances)
    if found.unbuilt:
        yield warning(
            "images",
            f"{len(found.unbuilt)} of {total} are to be built: {_some(found.unbuilt)}",
            "the first case of each builds it, from this system's package mirror: that takes minutes",
        )
    if not found.missing and not found.unbuilt:
        yield ok("images", f"all {total} are here")
    if not found.missing:
        return
    told = f"{len(found.missing)} of {total} are to be pulled: {_some(found.missing)}"
    sample = [] if asked.offline else _spread(found.missing, asked.sample)
    if not sample:
        yield warning("images", f"{told}; no registry was asked", "leave out --offline, or see --check-images")
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        faults = [why for why in pool.map(lambda listed: _why_not(asked, engine.client, listed), sample) if why]
    if faults:
        yield fault("images", f"{told}; of {len(sample)} asked of the registry: {'; '.join(faults)}", _ADVICE)
    else:
        yield ok("images", f"{told}; the registry has the {len(sample)} that it was asked of")


_ADVICE = (
    "see to this machine's way to the registry and to `docker login`; or pull or build the images under their "
    "official names (docs/instances.md)"
)


def _why_not(asked: Asked, client: docker.DockerClient, listed: ListedInstance) -> str:
    """Why an image can't be pulled; "" where it can."""
    try:
        client.api.inspect_distribution(name_to_pull(listed.instance_id, _row_image(asked, listed)))  # type: ignore[no-untyped-call]
    except NotFound:
        why = "no such image"
    except (APIError, RequestException, DockerException) as error:
        said = getattr(error, "explanation", None) or error
        why = " ".join(str(said).split())[:200]
    else:
        return ""
    return f"{listed.instance_id}: {why}"


def _row_image(asked: Asked, listed: ListedInstance) -> str | None:
    try:
        return read_row(asked.rows, listed.instance_id).image
    except InstanceError:
        return None  # it could not be had, which is told of elsewhere


def _names(asked: Asked, listed: ListedInstance) -> list[str]:
    return official_names(listed.instance_id, _row_image(asked, listed))


def _tagged(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _spread(missing: Sequence[ListedInstance], most: int) -> list[ListedInstance]:
    """Some of them, from all over the list."""
    step = max(1, len(missing) // max(1, most))
    return list(missing[::step])[:most]


def _some(listed: Sequence[ListedInstance]) -> str:
    shown = ", ".join(one.instance_id for one in listed[:_SHOWN])
    return shown + (f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
