"""openclaw and the Node that runs it, from an npm registry.

`claw_configs/openclaw/package-lock.json` pins every package with its checksum and names no registry: the user's
npm settings do. No package's install script runs except openclaw's own, which would otherwise run, and fail, at
each start from a read-only folder.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from adapters.openclaw.openclaw_runtime import MODULE, NODE, NODE_VERSION, PENDING, VERSION
from adapters.user_config import CONFIGS
from clawbench.install.base import InstallError, Piece, Say, run_counted

_FETCHED = ("npm http fetch", "files fetched")
_QUIET = ("npm warn EBADENGINE",)  # npm's own Node starts none of the packages


class OpenclawInstaller:
    """See `Installer`."""

    version = VERSION

    def pieces(self) -> Sequence[Piece]:
        """See `Installer.pieces`."""
        return [Piece(VERSION, f"openclaw {VERSION} with Node {NODE_VERSION}", {"node": NODE_VERSION})]

    def make(self, piece: Piece, folder: Path, say: Say) -> None:  # noqa: ARG002 - there is one piece
        """See `Installer.make`."""
        if platform.machine() != "x86_64":
            raise InstallError(f"the Node that comes with openclaw is for x86_64, not {platform.machine()}")
        npm = shutil.which("npm")
        if npm is None:
            raise InstallError(
                "openclaw comes from an npm registry, and there is no npm on PATH. Install it (Debian and Ubuntu: "
                "`apt-get install npm`; else with Node from nodejs.org) and try again"
            )
        say("330 packages, 832 MB: this takes a minute or two")
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(CONFIGS / "openclaw" / name, folder / name)
        command = [
            npm,
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=http",
            f"--prefix={folder}",
        ]
        code, said = run_counted(command, say, counted=_FETCHED, quiet=_QUIET, folder=folder)
        if code != 0:
            raise InstallError(
                "openclaw could not be installed: is the network up, and does `npm config get registry` name a "
                "registry that answers from here?\n" + "\n".join(said)
            )
        _complete(folder, say)


def _complete(folder: Path, say: Say) -> None:
    """Let openclaw finish its installation, which its first start does, with a HOME of its own."""
    with tempfile.TemporaryDirectory() as home:
        variables = {"HOME": home, "PATH": os.environ.get("PATH", os.defpath), "OPENCLAW_STATE_DIR": home}
        command = [str(folder / NODE), str(folder / MODULE / "openclaw.mjs"), "--version"]
        code, said = run_counted(command, say, counted=_FETCHED, folder=folder, environment=variables)
    if code != 0:
        raise InstallError(
            "openclaw could not be installed: does the Node from npm run on this machine (glibc 2.28 or newer)?\n"
            + "\n".join(said)
        )
    if (folder / MODULE / PENDING).exists() or VERSION not in "".join(said):
        raise InstallError(f"openclaw {VERSION} did not finish its installation; it said: {said or 'nothing'}")
