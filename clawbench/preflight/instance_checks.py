"""Whether the instances' rows, the harness that judges them, and their images are available."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import docker
from docker.errors import APIError, DockerException, NotFound
from requests.exceptions import RequestException

import demo.task_images
from adapters.runtimes import default_home
from clawbench.preflight.engine_checks import Engine
from clawbench.preflight.findings import Finding, fault, ok, warning
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.manifest import rows_source
from clawbench.run.recordings import RecordingError, require_recordings
from demo.image_build import is_current
from evaluation.harness import EvaluationError, harness_version
from evaluation.instances import InstanceError
from evaluation.lists import ListedInstance
from evaluation.rows import read_row, take_rows
from workspace.instance_images import name_to_pull, official_names

_AT_ONCE = 3
_SHOWN = 5


def rows(run: PlannedRun) -> Iterator[Finding]:
    """Fetch the rows, as the run does, and find the harness that judges them."""
    settings = run.settings
    if run.offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the hub's library is imported, further on
    if settings.recordings is not None:
        try:
            require_recordings(settings.recordings, run.cases)
        except RecordingError as error:
            yield fault("recordings", str(error), "record them (--record), or select less")
    try:
        taken = take_rows(
            run.instances,
            demo=demo.task_images.TASK_REPO,
            into=run.rows,
            dataset=settings.dataset,
            revisions=settings.revisions,
        )
    except InstanceError as error:
        yield fault("rows", str(error), "fix them, or give others by --dataset")
        return
    sources = [f"{len(found.instances)} of {found.source.name}" for found in taken.values()]
    embedded = len(run.instances) - len(run.real)
    yield ok("rows", ", ".join([*sources, *([f"{embedded} embedded"] if embedded else [])]))
    try:
        harnesses = {rows_source(found, default_home()).harness for found in taken.values()}
    except (EvaluationError, InstanceError) as error:
        yield fault("harness", str(error), "clawbench install swebench4, or rows of swebench 5's shape")
        return
    yield ok("harness", ", ".join(sorted(harnesses or {harness_version()})))


@dataclass(frozen=True)
class Images:
    """Which images of the selected instances are not here."""

    missing: Sequence[ListedInstance]
    """Real instances whose images would be pulled."""
    unbuilt: Sequence[ListedInstance]
    """Embedded tasks whose images would be built."""


def images_of(run: PlannedRun, engine: Engine) -> Images:
    """Look for all of them in the engine, with one question for the real ones (raises DockerException, OSError)."""
    client = engine.client
    unbuilt = [
        listed
        for listed in run.instances
        if listed.embedded and not is_current(client, demo.task_images.task_recipe(listed.instance_id))
    ]
    missing: list[ListedInstance] = []
    if run.real:
        tags = {tag for image in client.api.images() for tag in image.get("RepoTags") or []}
        missing = [listed for listed in run.real if not tags & {_tagged(name) for name in _names(run, listed)}]
    return Images(missing, unbuilt)


def image_here(run: PlannedRun, engine: Engine) -> str | None:
    """The name of an instance's image that is in the engine; None if there is none (raises DockerException, OSError)."""
    here = {tag for image in engine.client.api.images() for tag in image.get("RepoTags") or []}
    names = (
        [demo.task_images.image_name(listed.instance_id)] if listed.embedded else _names(run, listed)
        for listed in run.instances
    )
    return next((name for several in names for name in several if _tagged(name) in here), None)


def images(run: PlannedRun, engine: Engine, found: Images) -> Iterator[Finding]:
    """Report on the images, and ask the registry about some that are not here.

    The engine's question (`GET /distribution/{name}/json`) fetches the manifest, which counts as a pull where a
    registry limits these (Docker Hub: 100 in six hours without an account). So it is asked for a few only.
    """
    total = len(run.instances)
    if found.unbuilt:
        yield warning(
            "images",
            f"{len(found.unbuilt)} of {total} must be built: {_some(found.unbuilt)}",
            "the first case of each builds it, from this system's package mirror: that takes minutes",
        )
    if not found.missing:
        if not found.unbuilt:
            yield ok("images", f"all {total} are here")
        return
    to_pull = f"{len(found.missing)} of {total} must be pulled: {_some(found.missing)}"
    sample = [] if run.offline else _spread(found.missing, run.sample)
    if not sample:
        yield warning("images", f"{to_pull}; no registry was asked", "leave out --offline, or see --check-images")
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        faults = [why for why in pool.map(lambda listed: _why_not(run, engine.client, listed), sample) if why]
    if faults:
        to_do = (
            "check this machine's way to the registry and `docker login`; or pull or build the images under their "
            "official names (docs/instances.md)"
        )
        yield fault("images", f"{to_pull}; of {len(sample)} asked of the registry: {'; '.join(faults)}", to_do)
    else:
        yield ok("images", f"{to_pull}; the registry has the {len(sample)} that were tried")


def _why_not(run: PlannedRun, client: docker.DockerClient, listed: ListedInstance) -> str:
    """Why an image can't be pulled; "" if it can."""
    try:
        client.api.inspect_distribution(name_to_pull(listed.instance_id, _row_image(run, listed)))  # type: ignore[no-untyped-call]
    except NotFound:
        why = "no such image"
    except (APIError, RequestException, DockerException) as error:
        why = " ".join(str(getattr(error, "explanation", None) or error).split())[:200]
    else:
        return ""
    return f"{listed.instance_id}: {why}"


def _row_image(run: PlannedRun, listed: ListedInstance) -> str | None:
    try:
        return read_row(run.rows, listed.instance_id).image
    except InstanceError:
        return None  # reported as a missing row


def _names(run: PlannedRun, listed: ListedInstance) -> list[str]:
    return official_names(listed.instance_id, _row_image(run, listed))


def _tagged(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _spread(missing: Sequence[ListedInstance], most: int) -> list[ListedInstance]:
    """Some of them, from all over the list."""
    step = max(1, len(missing) // max(1, most))
    return list(missing[::step])[:most]


def _some(listed: Sequence[ListedInstance]) -> str:
    shown = ", ".join(one.instance_id for one in listed[:_SHOWN])
    return shown + (f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
