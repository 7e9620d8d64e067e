"""What is thrown at a run: each of it for real, at a moment that nobody chose.

The disk is full because it is, and a folder can't be written because it is mounted read-only: root is refused as
well. That needs a mount namespace of our own, see `__main__`.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from clawbench import ROOT
from records.files import files_below
from records.run_folder import RunDirectory
from tests.long.rehearsal.command import Command
from tests.long.rehearsal.ledger import READY
from tests.long.rehearsal.stage import Stage

Undo = Callable[[], None]
_BALLAST = "ballast"
_CLOSED = 4.0
"""Seconds for which a folder is read-only at the most."""


class MissedError(Exception):
    """There is nothing (any more) that the fault could hit."""


class LostError(AssertionError):
    """A run lost something, did something twice, or let two commands in; the message tells all that was found."""


@dataclass(frozen=True)
class Fault:
    """Something that can go wrong while a command is at work."""

    name: str
    throw: Callable[[Stage, Command, Random], Undo | None]
    """Does it; returns what ends it, to be called when the command has ended. Raises MissedError."""
    ends: bool = False
    """Whether the command comes to no good end by it."""


def _there(command: Command, kind: str) -> list[int]:
    """The command's processes of a kind, as soon as it has any (raises MissedError)."""
    while not (pids := command.of_kind(kind)):
        if command.process.poll() is not None:
            raise MissedError
        time.sleep(0.05)
    return pids


def _kill_worker(stage: Stage, command: Command, draw: Random) -> None:
    """Kill one that has started: where one dies before, pytest-xdist ends the command."""
    while not (ready := _ready(stage).intersection(_there(command, "worker"))):
        time.sleep(0.05)
    if not command.kill(draw.choice(sorted(ready))):
        raise MissedError


def _ready(stage: Stage) -> set[int]:
    return {row["pid"] for row in stage.ledger.rows() if row["event"] == READY}


def _kill_controller(stage: Stage, command: Command, draw: Random) -> None:
    del stage
    family = [pid for kind in ("worker", "gateway") for pid in command.of_kind(kind)]
    if not command.kill(command.process.pid):
        raise MissedError
    if draw.random() < 0.5:  # as where a machine loses all of them at once
        for pid in family:
            command.kill(pid)


def _kill_gateway(stage: Stage, command: Command, draw: Random) -> None:
    del stage, draw
    for pid in _there(command, "gateway"):
        if not command.kill(pid):
            raise MissedError


def _fill_disk(stage: Stage, command: Command, draw: Random) -> Undo:
    """Take all that is free, but for a little that is soon used up."""
    ballast = stage.artifacts / _BALLAST
    spare = draw.randrange(64)
    with ballast.open("wb") as file:
        while True:
            free = os.statvfs(stage.artifacts)
            if command.process.poll() is not None or not free.f_bavail:  # it is over, or has filled it by itself
                return ballast.unlink
            try:
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail - spare) * free.f_frsize)
            except OSError:  # the run has taken some of it in this moment
                spare += 16
                continue
            return ballast.unlink


def _close_folder(stage: Stage, command: Command, draw: Random) -> None:
    """Mount a claw's folder over itself, read-only, for a while: every case that needs it breaks."""
    while not (folders := [path for path in stage.run.path.glob("[!.]*") if path.is_dir()]):
        if command.process.poll() is not None:
            raise MissedError
        time.sleep(0.05)  # a run has none before its first case
    folder, aside = str(draw.choice(sorted(folders))), str(stage.folder / "closed")
    Path(aside).mkdir(exist_ok=True)
    # read-only before it is in its place: there somebody may write by it at once, and then it can't be made so
    for words in (["--bind", folder, aside], ["-o", "remount,bind,ro", aside], ["--bind", aside, folder]):
        subprocess.run(["mount", *words], check=True)
    try:
        time.sleep(_CLOSED * draw.random())
    finally:
        for place in (folder, aside):
            subprocess.run(["umount", "--lazy", place], check=True)


def _second_command(stage: Stage, command: Command, draw: Random) -> None:
    """The same command, while the first is at work: it must be refused."""
    del draw
    _there(command, "worker")  # before it has any, it may be the one that is refused
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
    """Take the ends of files of a run that is not at work, though they were on the disk: as one that fails does.

    Returns:
        which, below the run's folder.
    """
    predictions = [*run.path.glob("predictions*.jsonl"), *run.path.glob("*/predictions*.jsonl")]
    derived = sorted([run.path / "state.jsonl", *predictions])
    torn = draw.sample(derived, min(len(derived), 2))
    for name in ("metadata.json", "export.json", "git.patch"):
        found = sorted(run.path.glob(f"*/*/{name}"))
        torn += [draw.choice(found)] if found else []
    for path in torn:
        _cut(path, draw, least=max(0, path.stat().st_size - 200))
    return sorted(str(path.relative_to(run.path)) for path in torn)


def lose_power(stage: Stage, draw: Random) -> int:
    """Leave a run that is not at work as a loss of power at this moment does: without what is not on the disk.

    Returns:
        how many files lost something.
    """
    synced = {row["file"]: row["size"] for row in stage.synced.rows()}
    paths = [path for path in files_below(stage.run.path) if not path.is_symlink()]
    return sum(_cut(path, draw, least=synced.get(path.stat().st_ino, 0)) for path in paths)


def _cut(path: Path, draw: Random, least: int) -> bool:
    """Take a file's end, a byte or more; whether it had so much.

    Args:
        path: the file.
        draw: says how much.
        least: bytes that are left to it.
    """
    size = path.stat().st_size
    if size <= least:
        return False
    os.truncate(path, draw.choice((least, size - 1, draw.randrange(least, size))))
    return True
