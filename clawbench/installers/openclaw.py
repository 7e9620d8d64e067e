"""openclaw and the Node that runs it, from an npm registry.

Every package is pinned, with its checksum, by `claw_configs/openclaw/package-lock.json`, which names no registry:
the user's npm settings do. No package's install script runs but openclaw's own, which would otherwise run, and
fail, at each start from a read-only folder.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from adapters.openclaw import CONFIG_FOLDER, VERSION
from adapters.openclaw_runtime import MODULE, NODE, NODE_VERSION, PENDING
from clawbench.installers.base import InstallError, Piece, Say

_LOCK = ("package.json", "package-lock.json")
_TAIL = 6
_EVERY = 10
"""Seconds between two words of progress."""


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
        for name in _LOCK:
            shutil.copyfile(CONFIG_FOLDER / name, folder / name)
        _run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", f"--prefix={folder}"],
            "is the network up, and does `npm config get registry` name a registry that answers from here?",
            folder,
            say,
        )
        _complete(folder, say)


def _complete(folder: Path, say: Say) -> None:
    """Let openclaw finish its installation, which its first start does, with a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        variables = {"HOME": home, "PATH": os.environ.get("PATH", os.defpath), "OPENCLAW_STATE_DIR": home}
        said = _run(
            [str(folder / NODE), str(folder / MODULE / "openclaw.mjs"), "--version"],
            "does the Node from npm run on this machine (glibc 2.28 or newer)?",
            folder,
            say,
            variables,
        )
    if (folder / MODULE / PENDING).exists() or VERSION not in said:
        raise InstallError(f"openclaw {VERSION} did not finish its installation; it said: {said or 'nothing'}")
    say(said.splitlines()[-1])


def _run(
    command: Sequence[str], question: str, folder: Path, say: Say, variables: dict[str, str] | None = None
) -> str:
    """What a command says; one that fails is an error that ends with its last lines (raises InstallError).

    npm says nothing where no terminal is, so what has arrived in the folder is told instead.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise InstallError(f"openclaw could not be installed: {error}") from error
    with process:
        try:
            said = _all_of(process, lambda: say(f"{_megabytes(folder):,} MB so far"))
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        tail = "\n".join(deque(said.strip().splitlines(), _TAIL))
        raise InstallError(f"openclaw could not be installed: {question}\n{tail}")
    return said.strip()


def _all_of(process: subprocess.Popen[str], meanwhile: Callable[[], None]) -> str:
    while True:
        try:
            return process.communicate(timeout=_EVERY)[0]
        except subprocess.TimeoutExpired:
            meanwhile()


def _megabytes(folder: Path) -> int:
    """What is in a folder that others may be changing at this moment."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(Path(at, name)).st_size
    return total // 1_000_000


INSTALLER = OpenclawInstaller()
