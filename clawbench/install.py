"""Puts a claw's pinned runtime below `.claws/` (`CLAWBENCH_HOME`), whole or not at all.

A runtime is made in a temporary folder beside its place and renamed into it as the last step, so that a
killed install is no install. Only one process at a time installs a claw; the others wait and find it done.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from adapters import nanobot, registry
from adapters.runtimes import MARKER, PACKAGES, container_python, installed_folder
from clawbench.packages import PackagesError, Target
from clawbench.packages import install as install_packages

_PARTIAL = ".partial-"


class InstallError(RuntimeError):
    """A claw could not be installed; the message says why and what to try."""


def install(name: str, say: Callable[[str], None], home: Path) -> None:
    """Install a claw's runtime, or say that it is there.

    Args:
        name: The claw.
        say: Is told of the progress, in lines.
        home: The folder of all runtimes (`adapters.runtimes.default_home()`).

    Raises:
        BadOptionError: no claw has that name.
        NotInstalledError: this version has no adapter for the claw; `CLAW_PYTHON_HOME` names no Python.
        InstallError: the packages could not be had.
    """
    registry.adapter(name)  # the only one with an adapter is nanobot
    python = container_python().version
    folder = installed_folder(home, name, nanobot.VERSION, python)
    what = f"{name} {nanobot.VERSION} for Python {python}"
    if _is_whole(folder):
        say(f"{what} is installed already: {folder}")
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.parent / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say(f"another process is installing {name}; waiting for it")
        lock.acquire()
    try:
        if _is_whole(folder):
            say(f"{what} was installed meanwhile: {folder}")
            return
        for dead in folder.parent.glob(f"{_PARTIAL}*"):
            shutil.rmtree(dead)
        started = time.monotonic()
        say(f"installing {what} into {folder}")
        _make(folder, python, say)
        say(f"{what} is installed ({time.monotonic() - started:.0f} s)")
    finally:
        lock.release()


def _is_whole(folder: Path) -> bool:
    return (folder / MARKER).is_file()


def _make(folder: Path, python: str, say: Callable[[str], None]) -> None:
    """Fill a temporary sibling and rename it to its place."""
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
    try:
        constraints = nanobot.CONFIG_FOLDER / "constraints.txt"
        requirements = ["-c", str(constraints), f"nanobot-ai=={nanobot.VERSION}"]
        install_packages(requirements, lambda line: say(f"  {line}"), Target(partial / PACKAGES, python))
        marker = {"claw": nanobot.NanobotAdapter.name, "version": nanobot.VERSION, "python": python}
        (partial / MARKER).write_text(json.dumps(marker) + "\n", encoding="utf-8")
        partial.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)  # without a marker: what someone left half removed
        partial.rename(folder)
    except PackagesError as error:
        raise InstallError(
            f"{nanobot.NanobotAdapter.name} could not be installed. It comes from a Python package index: "
            "is the network up, and does `pip config list` name an index that answers from here (PIP_INDEX_URL, "
            f"PIP_CERT)?\n{error}"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
