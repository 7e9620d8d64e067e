"""Claws and the older official harness, from a Python package index.

A claw is installed once for each version of Python that will run it: the Python of Debian 12, which the embedded
task set's base image has if it comes from a registry; and the host distribution's own, which that image has if it
is bootstrapped. With a standalone Python (`CLAW_PYTHON_HOME`) it is that one alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.runtimes import MOUNTED, PACKAGES, container_python, folder_name
from adapters.user_config import CONFIGS
from clawbench.install.base import InstallError, Piece, Say
from clawbench.install.packages import PackagesError, Target
from clawbench.install.packages import install as install_packages

BASE_IMAGE_PYTHON = "3.11"

_REQUIREMENTS = {
    # without the web front ends that its package asks for and its agent never imports
    "generic": ("--no-deps", "-r", "{constraints}"),
    "hermes": ("-c", "{constraints}", "hermes-agent[anthropic]=={version}"),
    "nanobot": ("-c", "{constraints}", "nanobot-ai=={version}"),
}
"""For each claw arguments that pip and uv both take; its constraints file pins every package."""
_OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class PythonInstaller:
    """Installs a claw's distribution with everything that it needs."""

    claw: str
    version: str

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
        constraints = str(CONFIGS / self.claw / "constraints.txt")
        wanted = [part.format(constraints=constraints, version=self.version) for part in _REQUIREMENTS[self.claw]]
        _install(self.claw, wanted, folder / PACKAGES, piece.facts["python"], say)
        # the programs begin with the path of this very Python, and the suite starts none of them
        shutil.rmtree(folder / PACKAGES / "bin", ignore_errors=True)
        if compiler := _compiler(piece.facts["python"]):
            _compile(folder, compiler, f"{MOUNTED}/{self.claw}/{piece.folder}", say)


@dataclass(frozen=True)
class HarnessInstaller:
    """Installs the official harness before swebench 5 in a virtual environment of the suite's own Python."""

    version: str

    def pieces(self) -> Sequence[Piece]:
        """See `Installer.pieces`."""
        return [Piece(self.version, f"swebench {self.version}", {"python": _OWN_PYTHON})]

    def make(self, piece: Piece, folder: Path, say: Say) -> None:
        """See `Installer.make`."""
        # the environment is moved into place afterwards: only its programs name a path in it, and none is started
        venv.create(folder, symlinks=True, with_pip=False)
        python = piece.facts["python"]
        _install("swebench", [f"swebench=={self.version}"], folder / f"lib/python{python}" / PACKAGES, python, say)


def _install(what: str, requirements: Sequence[str], folder: Path, python: str, say: Say) -> None:
    try:
        install_packages(requirements, say, Target(folder, python))
    except PackagesError as error:
        raise InstallError(
            f"{what} could not be installed. It comes from a Python package index: is the network up, and does "
            f"`pip config list` name an index that answers from here (PIP_INDEX_URL, PIP_CERT)?\n{error}"
        ) from error


def _compiler(python: str) -> Path | None:
    """A Python of that version to make bytecode with; None if there is none."""
    if standalone := container_python().mounts:
        return standalone[0].source / "bin" / f"python{python}"
    return Path(sys.executable) if python == _OWN_PYTHON else None


def _compile(folder: Path, compiler: Path, mounted: str, say: Say) -> None:
    """Make the bytecode that a read-only runtime can't make for itself, or every case would pay for it.

    Args:
        folder: the runtime.
        compiler: the Python that will run it, or one of its version.
        mounted: the runtime's place in containers: bytecode names its source, and must not name the host's place.
        say: prints what does not work.
    """
    paths = ["-s", str(folder), "-p", mounted]
    command = [str(compiler), "-I", "-m", "compileall", "-q", "-j", "0", *paths, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        say(f"{compiler} does not run here ({error}): the claw will start more slowly")
        return
    if done.returncode != 0:
        say("some modules have no bytecode: they are for other versions of Python")


def wanted_pythons() -> list[str]:
    """The versions of Python that claws are installed for (raises NotInstalledError for a wrong variable)."""
    named = container_python().version
    return [named] if named else list(dict.fromkeys([BASE_IMAGE_PYTHON, *_distribution_python()]))


def _distribution_python() -> list[str]:
    """The host's own Python, if the host is a Debian or a relative, whose images can be bootstrapped."""
    if not Path("/etc/debian_version").exists():
        return []
    link = Path("/usr/bin/python3").resolve().name
    return [link.removeprefix("python")] if re.fullmatch(r"python3\.(1[1-9])", link) else []
