"""The installer protocol: what a claw's runtime consists of, and how one piece of it is made.

An installer fills an empty folder and knows nothing of locks, markers and interrupted installs:
`clawbench.install.install_claw` makes sure that a folder is there whole or not at all.
"""

from __future__ import annotations

import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from common.errors import ClawbenchError

Say = Callable[[str], None]
"""Prints a line of progress."""

_EVERY = 25
_TAIL = 12


class InstallError(ClawbenchError, RuntimeError):
    """A claw could not be installed; the message says why and what to try."""


@dataclass(frozen=True)
class Piece:
    """One folder of a claw's runtime; most claws have one, a Python claw has one per version of Python."""

    folder: str
    """Its name below the claw's folder; it contains the version, so that another version is another folder."""
    title: str
    """What it is, for messages, as in `nanobot 0.3.5 for Python 3.11`."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What its marker says besides the claw's name and version."""


class Installer(Protocol):
    """How one claw is installed."""

    @property
    def version(self) -> str:
        """The pinned version."""

    def pieces(self) -> Sequence[Piece]:
        """What the runtime consists of on this host; found without the network.

        Raises:
            NotInstalledError: a variable names something that is not there.
        """

    def make(self, piece: Piece, folder: Path, say: Say) -> None:
        """Fill an empty folder with a piece.

        Raises:
            InstallError: it could not be obtained.
        """


def run_counted(
    command: Sequence[str],
    say: Say,
    *,
    counted: tuple[str, str],
    quiet: tuple[str, ...] = (),
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, list[str]]:
    """Run a command that prints a line for each of many things, which are counted instead of shown.

    Args:
        command: the program and its arguments.
        say: prints the other lines, and the count from time to time.
        counted: what the lines that are counted begin with, and what they are lines about.
        quiet: what lines that are ignored begin with.
        folder: the working directory.
        environment: all environment variables of the command; None: this process's.

    Returns:
        the exit code and the last other lines.

    Raises:
        InstallError: the command can't be started.
    """
    tail: deque[str] = deque(maxlen=_TAIL)
    started, count = time.monotonic(), 0
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise InstallError(f"{command[0]} could not be started: {error}") from error
    with process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            for line in map(str.strip, process.stdout):
                if line.startswith(counted[0]):
                    count += 1
                    if count % _EVERY == 0:
                        say(f"{count} {counted[1]} so far ({(time.monotonic() - started) / 60:.0f} min)")
                elif line and not line.startswith(quiet or "\0"):
                    tail.append(line)
                    say(line[:200])
        except BaseException:
            process.kill()
            raise
    return process.returncode, list(tail)
