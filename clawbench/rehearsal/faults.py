"""What is thrown at a run: each of it for real, at a moment that nobody chose.

The disk is full because it is, and a folder can't be written because it is mounted read-only: root is refused as
well. That needs a mount namespace of our own, see `__main__`.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from clawbench.rehearsal.command import Command
from clawbench.rehearsal.stage import Stage
from clawbench.run_manifest import ROOT
from records.case import REQUESTS
from records.run import RunDirectory

Undo = Callable[[], None]
_BALLAST = "ballast"


class LostError(AssertionError):
    """A run lost something, did something twice, or let two commands in; the message tells all that was found."""


@dataclass(frozen=True)
class Fault:
    """Something that can go wrong while a command is at work."""

    name: str
    throw: Callable[[Stage, Command, Random], Undo | None]
    """Does it; returns what ends it, to be called when the command has ended."""
    ends: bool = False
    """Whether the command comes to no good end by it."""


def _kill_worker(stage: Stage, command: Command, draw: Random) -> None:
    del stage
    workers = command.of_kind("worker")
    if workers:
        command.kill(draw.choice(workers))


def _kill_controller(stage: Stage, command: Command, draw: Random) -> None:
    del stage
    family = [pid for kind in ("worker", "gateway") for pid in command.of_kind(kind)]
    command.kill(command.process.pid)
    if draw.random() < 0.5:  # as where a machine loses all of them at once
        for pid in family:
            command.kill(pid)


def _kill_gateway(stage: Stage, command: Command, draw: Random) -> None:
    del stage, draw
    for pid in command.of_kind("gateway"):
        command.kill(pid)


def _fill_disk(stage: Stage, command: Command, draw: Random) -> Undo:
    """Take all that is free, but for a little that is soon used up."""
    del command
    ballast = stage.artifacts / _BALLAST
    spare = draw.randrange(64)
    with ballast.open("wb") as file:
        while True:
            free = os.statvfs(stage.artifacts)
            try:
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail - spare) * free.f_frsize)
            except OSError:  # the run has taken some of it in this moment
                spare += 16
                continue
            return ballast.unlink


def _close_folder(stage: Stage, command: Command, draw: Random) -> Undo:
    """Mount a claw's folder over itself, read-only."""
    del command
    folders = [path for path in stage.run.path.iterdir() if path.is_dir() and not path.name.startswith(".")]
    if not folders:
        return lambda: None
    folder = str(draw.choice(sorted(folders)))
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    return lambda: void(subprocess.run(["umount", "--lazy", folder], check=True))


def void(_: object) -> None:
    """Nothing comes of it."""


def _second_command(stage: Stage, command: Command, draw: Random) -> None:
    """The same command, while the first is at work: it must be refused."""
    del draw
    while not command.of_kind("worker") and command.process.poll() is None:
        time.sleep(0.05)  # before it has workers, it may be the one that is refused
    done = subprocess.run(
        stage.command(), cwd=ROOT, env=stage.environment, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    is_refused = done.returncode == 4 and "is in progress in another process" in said
    if command.process.poll() is None and not is_refused:
        raise LostError(f"a second command under the run id ended with {done.returncode}:\n{said[-3000:]}")


WORKER = Fault("worker killed", _kill_worker)
CONTROLLER = Fault("controller killed", _kill_controller, ends=True)
GATEWAY = Fault("gateway killed", _kill_gateway, ends=True)
DISK = Fault("disk full", _fill_disk, ends=True)
FOLDER = Fault("folder unwritable", _close_folder)
SECOND = Fault("second command", _second_command)


def tear(run: RunDirectory, draw: Random) -> list[str]:
    """Leave files of a run that is not at work as a loss of power leaves them: without their end.

    Returns:
        which, below the run's folder.
    """
    predictions = [*run.path.glob("predictions*.jsonl"), *run.path.glob("*/predictions*.jsonl")]
    derived = sorted([run.path / "state.jsonl", *predictions])
    torn = draw.sample(derived, min(len(derived), 2))
    for name in ("metadata.json", "export.json", "git.patch", REQUESTS):
        found = sorted(run.path.glob(f"*/*/{name}"))
        if name == REQUESTS:
            # once a case's export is there, nobody writes to it, and nobody can make it again
            found = [path for path in found if not path.with_name("export.json").exists()]
        torn += [draw.choice(found)] if found else []
    for path in torn:
        with suppress(FileNotFoundError):
            size = path.stat().st_size
            os.truncate(path, draw.randrange(max(0, size - 200), size) if size else 0)
    return sorted(str(path.relative_to(run.path)) for path in torn)
