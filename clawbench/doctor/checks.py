"""Which checks are made when: all of them for `clawbench doctor`, those that take seconds before a real run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from docker.errors import DockerException

from adapters.base import BadOptionError, NotInstalledError
from clawbench.doctor import claws, disk, engine, instances, machine, model
from clawbench.doctor.asked import Asked
from clawbench.doctor.engine import Engine
from clawbench.doctor.findings import Finding, fault, warning

_NOT_MADE = "limits, storage, memory, disk, images"


def whole(asked: Asked) -> Iterator[Finding]:
    """All checks, for a run that is only meant: the rows are taken on the way."""
    found, reached = engine.reach()
    yield from found
    yield from _guarded("rows", lambda: instances.rows(asked))
    yield from _shared(asked, reached)
    yield from _guarded("model", lambda: model.check(asked))
    registry = reached.info.get("IndexServerAddress") if reached is not None and asked.real else None
    yield from _guarded("clock", lambda: model.clock(asked, registry))
    yield machine.packages()
    if reached is not None:
        reached.client.close()


def quick(asked: Asked, logs: Path) -> Iterator[Finding]:
    """What is looked at before a real run, whose rows and settings are in order already.

    Args:
        asked: the run.
        logs: the folder that gets the logs of requests to the model.
    """
    found, reached = engine.reach()
    yield from found
    yield from _shared(asked, reached)
    yield from _guarded("model", lambda: model.check(asked, logs))
    if reached is not None:
        reached.client.close()


def _shared(asked: Asked, reached: Engine | None) -> Iterator[Finding]:
    yield from _guarded("claws", lambda: claws.check(asked))
    if reached is None:
        yield warning("engine", f"not looked at: {_NOT_MADE}", "they are, once the engine answers")
    else:
        yield from _of_engine(asked, reached)
    yield from _guarded("artifacts", lambda: machine.artifacts(asked))
    yield machine.open_files(asked)
    yield machine.git()


def _of_engine(asked: Asked, reached: Engine) -> Iterator[Finding]:
    yield engine.clock(reached)
    yield from _guarded("memory", lambda: machine.memory(asked, reached))
    yield machine.processes(asked, reached)
    yield from machine.inotify(asked, reached)
    yield from _guarded("images", lambda: _images(asked, reached))


def _images(asked: Asked, reached: Engine) -> Iterator[Finding]:
    images = instances.images_of(asked, reached)
    yield from instances.images(asked, reached, images)
    yield from disk.room(asked, reached, missing=len(images.missing), missing_embedded=len(images.unbuilt))


def _guarded(check: str, made: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """A check's findings; what breaks under it is one."""
    try:
        yield from made()
    except (DockerException, OSError, BadOptionError, NotInstalledError) as error:
        yield fault(check, f"it could not be looked at: {error}", "mend that first")
