"""The installer protocol: what a claw's runtime consists of, and how one piece of it is made.

An installer fills a folder that it is given and knows nothing of locks, markers and half-done installs:
`clawbench.install` sees to it that a folder is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

Say = Callable[[str], None]
"""Is told of the progress, in lines."""


class InstallError(RuntimeError):
    """A claw could not be installed; the message says why and what to try."""


@dataclass(frozen=True)
class Piece:
    """One folder of a claw's runtime; most have one, a Python claw has one per version of Python."""

    folder: str
    """Its name below the claw's folder; it holds the version, so that another version is another folder."""
    title: str
    """What it is, for messages, as in `nanobot 0.3.5 for Python 3.11`."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What goes into its marker beside the claw's name and version."""


class Installer(Protocol):
    """How one claw is installed."""

    @property
    def version(self) -> str:
        """The pinned version."""

    def pieces(self) -> Sequence[Piece]:
        """What the runtime consists of on this host; asks nothing of the network.

        Raises:
            NotInstalledError: a variable names something that is not there.
        """

    def make(self, piece: Piece, folder: Path, say: Say) -> None:
        """Fill an empty folder with a piece.

        Raises:
            InstallError: it could not be had.
        """
