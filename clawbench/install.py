"""Puts a claw's pinned runtime below `.claws/` (`CLAWBENCH_HOME`), whole or not at all.

A runtime is made in a temporary folder beside its place and renamed into it as the last step, so that a
killed install is no install. Only one process at a time installs a claw; the others wait and find it done.

It is installed for the Python of Debian 12, which the embedded task set's base image has where a registry
answers, and for the host distribution's own, which that image has where it is bootstrapped. With
`CLAW_PYTHON_HOME` it is installed for that Python alone.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from adapters import nanobot, registry
from adapters.runtimes import MARKER, PACKAGES, container_python, folder_name, installed_pythons
from clawbench.packages import PackagesError, Target
from clawbench.packages import install as install_packages

BASE_IMAGE_PYTHON = "3.11"
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
    folder = home / name
    missing = _missing(folder)
    if not missing:
        say(f"{name} {nanobot.VERSION} is installed already: {folder}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say(f"another process is installing {name}; waiting for it")
        lock.acquire()
    try:
        for dead in folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(dead)
        for python in _missing(folder):
            started = time.monotonic()
            say(f"installing {name} {nanobot.VERSION} for Python {python} into {folder}")
            _make(folder / folder_name(nanobot.VERSION, python), python, say)
            say(f"{name} {nanobot.VERSION} for Python {python} is installed ({time.monotonic() - started:.0f} s)")
    finally:
        lock.release()


def _missing(folder: Path) -> list[str]:
    """The versions of Python that nanobot is yet to be installed for."""
    named = container_python().version
    wanted = [named] if named else list(dict.fromkeys([BASE_IMAGE_PYTHON, *_distribution_python()]))
    found = installed_pythons(folder, nanobot.VERSION)
    return [python for python in wanted if python not in found]


def _distribution_python() -> list[str]:
    """The version of the host's own Python, if it is a Debian or a relative, whose images can be bootstrapped."""
    if not Path("/etc/debian_version").exists():
        return []
    link = Path("/usr/bin/python3").resolve().name
    return [link.removeprefix("python")] if re.fullmatch(r"python3\.(1[1-9])", link) else []


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
