"""The official harness before swebench 5, from PyPI, in a virtual environment of the suite's own Python."""

from __future__ import annotations

import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from adapters.runtimes import PACKAGES
from clawbench.installers.base import InstallError, Piece, Say
from clawbench.packages import PackagesError, Target
from clawbench.packages import install as install_packages
from evaluation.harness4 import VERSION

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Swebench4Installer:
    """Makes the environment that `evaluation.harness4` looks for."""

    version = VERSION

    def pieces(self) -> Sequence[Piece]:
        """See `Installer.pieces`."""
        return [Piece(VERSION, f"swebench {VERSION}", {"python": _PYTHON})]

    def make(self, piece: Piece, folder: Path, say: Say) -> None:
        """See `Installer.make`."""
        # the environment is moved to its place afterwards: only programs that none starts name a path in it
        venv.create(folder, symlinks=True, with_pip=False)
        target = Target(folder / "lib" / f"python{piece.facts['python']}" / PACKAGES, piece.facts["python"])
        try:
            install_packages([f"swebench=={VERSION}"], say, target)
        except PackagesError as error:
            raise InstallError(
                "swebench could not be installed. It comes from a Python package index: is the network up, and "
                f"does `pip config list` name an index that answers from here (PIP_INDEX_URL, PIP_CERT)?\n{error}"
            ) from error


INSTALLER = Swebench4Installer()
