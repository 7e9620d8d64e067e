"""Claws from a Python package index: once for each version of Python that will run them.

That is the Python of Debian 12, which the embedded task set's base image has where a registry answers, and the
host distribution's own, which that image has where it is bootstrapped; with a standalone Python
(`CLAW_PYTHON_HOME`) it is that one alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.runtimes import MOUNTED, PACKAGES, container_python, folder_name
from clawbench.installers.base import InstallError, Piece, Say
from clawbench.packages import PackagesError, Target
from clawbench.packages import install as install_packages

BASE_IMAGE_PYTHON = "3.11"


@dataclass(frozen=True)
class PythonInstaller:
    """Installs one distribution with everything that it needs, pinned by a constraints file."""

    claw: str
    version: str
    requirements: tuple[str, ...]
    """Arguments that pip and uv both take."""

    def pieces(self) -> Sequence[Piece]:
        """See `Installer.pieces`."""
        return [
            Piece(
                folder_name(self.version, python),
                f"{self.claw} {self.version} for Python {python}",
                {"python": python},
            )
            for python in wanted_pythons()
        ]

    def make(self, piece: Piece, folder: Path, say: Say) -> None:
        """See `Installer.make`."""
        try:
            install_packages(self.requirements, say, Target(folder / PACKAGES, piece.facts["python"]))
        except PackagesError as error:
            raise InstallError(
                f"{self.claw} could not be installed. It comes from a Python package index: is the network up, "
                "and does `pip config list` name an index that answers from here (PIP_INDEX_URL, PIP_CERT)?\n"
                f"{error}"
            ) from error
        # the programs begin with the path of this very Python, and the suite starts none of them
        shutil.rmtree(folder / PACKAGES / "bin", ignore_errors=True)
        if compiler := _compiler(piece.facts["python"]):
            _compile(folder, compiler, f"{MOUNTED}/{self.claw}/{piece.folder}", say)


def _compiler(python: str) -> Path | None:
    """What makes bytecode for a Python; None where none is at hand."""
    if standalone := container_python().mounts:
        return standalone[0].source / "bin" / f"python{python}"
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.executable) if python == own else None


def _compile(folder: Path, compiler: Path, mounted: str, say: Say) -> None:
    """Make the bytecode that a read-only runtime can't make for itself: without it every case pays for it.

    Args:
        folder: the runtime.
        compiler: the Python that will run it, or one of its version.
        mounted: its place in containers, for the host's is not theirs to know: bytecode names its source.
        say: told of what does not work.
    """
    paths = ["-s", str(folder), "-p", mounted]
    command = [str(compiler), "-I", "-m", "compileall", "-q", "-j", "0", *paths, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        say(f"{compiler} does not run here ({error}): the claw will start more slowly")
        return
    if done.returncode != 0:
        say("some modules have no bytecode: they are of other versions of Python")


def wanted_pythons() -> list[str]:
    """The versions of Python that claws are installed for (raises NotInstalledError for a wrong variable)."""
    named = container_python().version
    return [named] if named else list(dict.fromkeys([BASE_IMAGE_PYTHON, *_distribution_python()]))


def _distribution_python() -> list[str]:
    """The version of the host's own Python, if it is a Debian or a relative, whose images can be bootstrapped."""
    if not Path("/etc/debian_version").exists():
        return []
    link = Path("/usr/bin/python3").resolve().name
    return [link.removeprefix("python")] if re.fullmatch(r"python3\.(1[1-9])", link) else []
