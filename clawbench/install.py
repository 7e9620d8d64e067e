"""Puts a claw's pinned runtime below `.claws/` (`CLAWBENCH_HOME`), whole or not at all.

A piece of a runtime is made in a temporary folder beside its place and renamed into it as the last step, so that
a killed install is no install, and the next one goes on with the pieces that are missing. Only one process at a
time installs a claw; the others wait and find it done.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from importlib import import_module
from pathlib import Path

from filelock import FileLock, Timeout

from adapters import registry
from adapters.base import NotInstalledError
from adapters.runtimes import MARKER
from clawbench.installers.base import Installer, InstallError, Piece, Say
from evaluation import harness4

_PARTIAL = ".partial-"


def installer(name: str) -> Installer:
    """How a claw is installed: the `INSTALLER` of the module in `clawbench.installers` that is named as it.

    The one name that is no claw's is that of the harness which judges rows of the older shape.

    Raises:
        BadOptionError: no claw has that name.
        NotInstalledError: this version has no adapter for the claw.
        InstallError: it is one from outside the tree, which its own package knows how to get.
    """
    if name != harness4.FOLDER:
        claw = registry.adapter(name)
        if name not in registry.CLAWS:
            raise InstallError(
                f"{name} comes from outside of clawbench, which can't install it; {claw.install_hint}"
            )
    found: Installer = import_module(f"clawbench.installers.{name}").INSTALLER
    return found


def install(name: str, say: Say, home: Path) -> None:
    """Install a claw's runtime, or say that it is there.

    Args:
        name: The claw.
        say: Is told of the progress, in lines.
        home: The folder of all runtimes (`adapters.runtimes.default_home()`).

    Raises:
        BadOptionError: no claw has that name.
        NotInstalledError: this version has no adapter for the claw; a variable names nothing that is there.
        InstallError: what it consists of could not be had.
    """
    if name in registry.claws() and name not in registry.CLAWS and registry.installed(name):
        found = registry.adapter(name).runtime()
        say(f"{name} {found.version} is installed already: {found.location}")
        return
    how, folder = installer(name), home / name
    if not _missing(how, folder):
        say(f"{name} {how.version} is installed already: {folder}")
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
        for piece in _missing(how, folder):
            started = time.monotonic()
            say(f"installing {piece.title} into {folder}")
            _make(name, how, piece, folder / piece.folder, say)
            say(f"{piece.title} is installed ({time.monotonic() - started:.0f} s)")
    finally:
        lock.release()


def install_all(say: Say, home: Path) -> list[str]:
    """Install every claw, each in turn, going on after one that can't be had.

    Args:
        say: Is told of the progress and of failures, in lines.
        home: As for `install`.

    Returns:
        the claws that are not installed now.
    """
    failed = []
    for name in registry.claws():
        try:
            install(name, say, home)
        except (InstallError, NotInstalledError, OSError) as error:
            failed.append(name)
            say(f"{name} is not installed: {error}")
    say(f"not installed: {', '.join(failed)}" if failed else "all claws are installed")
    return failed


def _missing(how: Installer, folder: Path) -> list[Piece]:
    return [piece for piece in how.pieces() if not (folder / piece.folder / MARKER).exists()]


def _make(name: str, how: Installer, piece: Piece, folder: Path, say: Say) -> None:
    """Fill a temporary sibling and rename it to its place."""
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
    try:
        how.make(piece, partial, lambda line: say(f"  {line}"))
        marker = {"claw": name, "version": how.version, **piece.facts}
        (partial / MARKER).write_text(json.dumps(marker) + "\n", encoding="utf-8")
        partial.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)  # without a marker: what someone left half removed
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
