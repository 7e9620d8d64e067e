"""Which checks are made when: all of them for `clawbench doctor`, those that take seconds before a real run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from clawbench.preflight import claw_checks, engine_checks, instance_checks, machine_checks, model_checks
from clawbench.preflight.engine_checks import Engine
from clawbench.preflight.findings import Finding, fault, warning
from clawbench.preflight.planned_run import PlannedRun
from common.errors import known_error


def whole(run: PlannedRun) -> Iterator[Finding]:
    """All checks; rows that are missing are fetched on the way."""
    found, engine = engine_checks.reach()
    yield from found
    yield from _guarded("rows", lambda: instance_checks.rows(run))
    yield from _shared(run, engine)
    yield from _guarded("model", lambda: model_checks.check(run))
    registry = engine.info.get("IndexServerAddress") if engine is not None and run.real else None
    yield from _guarded("clock", lambda: model_checks.clock(run, registry))
    yield machine_checks.packages()
    if engine is not None:
        engine.client.close()


def quick(run: PlannedRun, logs: Path) -> Iterator[Finding]:
    """The checks before a real run, whose rows and settings have been read already.

    Args:
        run: the run.
        logs: the folder for the logs of requests to the model.
    """
    found, engine = engine_checks.reach()
    yield from found
    yield from _shared(run, engine)
    yield from _guarded("model", lambda: model_checks.check(run, logs))
    if engine is not None:
        engine.client.close()


def _shared(run: PlannedRun, engine: Engine | None) -> Iterator[Finding]:
    yield from _guarded("claws", lambda: claw_checks.check(run))
    if engine is None:
        not_made = "limits, storage, memory, disk, images, the claws' starts"
        yield warning("engine", f"not checked: {not_made}", "they are checked once the engine answers")
    else:
        yield engine_checks.clock(engine)
        yield from _guarded("memory", lambda: machine_checks.memory(run, engine))
        yield machine_checks.processes(run, engine)
        yield from machine_checks.inotify(run, engine)
        yield from _guarded("images", lambda: _images(run, engine))
        yield from _guarded("start", lambda: claw_checks.starts(run, engine))
    yield from _guarded("artifacts", lambda: machine_checks.artifacts(run))
    yield machine_checks.open_files(run)
    yield machine_checks.git()


def _images(run: PlannedRun, engine: Engine) -> Iterator[Finding]:
    images = instance_checks.images_of(run, engine)
    yield from instance_checks.images(run, engine, images)
    yield machine_checks.engine_disk(run, engine, len(images.missing), len(images.unbuilt))


def _guarded(check: str, made: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """A check's findings; if the check itself breaks, that is one too."""
    try:
        yield from made()
    except Exception as error:
        known = known_error(error)
        if known is None and not isinstance(error, OSError):
            raise  # a bug in the suite
        yield fault(check, f"the check failed: {error}", "fix that first")
