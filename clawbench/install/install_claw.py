"""Installs a claw's pinned runtime below `.claws/` (`CLAWBENCH_HOME`), whole or not at all.

A piece of a runtime is made in a temporary folder beside its place and renamed as the last step, so that a killed
install leaves nothing that counts, and the next one makes the pieces that are missing. Only one process at a time
installs a claw; the others wait and find it done.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

from adapters import registry
from adapters.generic.generic_adapter import GenericAdapter
from adapters.hermes.hermes_adapter import HermesAdapter
from adapters.nanobot.nanobot_adapter import NanobotAdapter
from adapters.runtimes import MARKER
from adapters.zeroclaw.zeroclaw_adapter import ZeroclawAdapter
from clawbench.install.base import Installer, InstallError, Piece, Say
from clawbench.install.openclaw_installer import OpenclawInstaller
from clawbench.install.python_installer import HarnessInstaller, PythonInstaller
from clawbench.install.zeroclaw_installer import CargoInstaller
from clawbench.run.runtime_digest import DIGEST, installed_digest, part_digests
from common.errors import ClawbenchError
from evaluation import harness4

_PARTIAL = ".partial-"


_INSTALLERS: dict[str, Installer] = {
    "openclaw": OpenclawInstaller(),
    "zeroclaw": CargoInstaller("zeroclaw", ZeroclawAdapter.version, "zeroclaw"),
    **{
        claw.name: PythonInstaller(claw.name, claw.version)
        for claw in (HermesAdapter, NanobotAdapter, GenericAdapter)
    },
    # the harness that judges rows of the older shape
    harness4.FOLDER: HarnessInstaller(harness4.VERSION),
}


def installer(name: str) -> Installer:
    """How a claw is installed.

    Raises:
        BadOptionError: no claw has that name.
        InstallError: the claw comes from outside the tree; its own package knows how to install it.
    """
    if name in _INSTALLERS:
        return _INSTALLERS[name]
    hint = registry.adapter(name).install_hint
    raise InstallError(f"{name} comes from outside of clawbench, which can't install it; {hint}")


def install(name: str, say: Say, home: Path) -> None:
    """Install a claw's runtime, or say that it is installed already.

    Args:
        name: the claw.
        say: prints a line of progress.
        home: the folder of all runtimes (`adapters.runtimes.default_home()`).

    Raises:
        BadOptionError: no claw has that name.
        NotInstalledError: a variable names something that is not there.
        InstallError: part of it could not be obtained.
    """
    if name in registry.claws() and name not in registry.CLAWS and registry.installed(name):
        found = registry.adapter(name).runtime()
        say(f"{name} {found.version} is installed already: {found.location}")
        return
    how, folder = installer(name), home / name
    if not _missing(how, folder, home):
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
        for piece in _missing(how, folder, home):
            started = time.monotonic()
            if (folder / piece.folder / MARKER).exists():
                say(f"{piece.title} is not what was installed: files were changed, added or removed")
            say(f"installing {piece.title} into {folder}")
            _make(name, how, piece, folder / piece.folder, say)
            say(f"{piece.title} is installed ({time.monotonic() - started:.0f} s)")
    finally:
        lock.release()


def install_all(say: Say, home: Path) -> list[str]:
    """Install every claw in turn, continuing after one that fails.

    Args:
        say: prints a line of progress or about a failure.
        home: as for `install`.

    Returns:
        the claws that could not be installed.
    """
    failed = []
    for name in registry.claws():
        try:
            install(name, say, home)
        except (ClawbenchError, OSError) as error:
            failed.append(name)
            say(f"{name} is not installed: {error}")
    say(f"not installed: {', '.join(failed)}" if failed else "all claws are installed")
    return failed


def _missing(how: Installer, folder: Path, home: Path) -> list[Piece]:
    """The pieces that are not there, or not what was installed."""
    return [piece for piece in how.pieces() if not _is_whole(folder / piece.folder, home)]


def _is_whole(piece: Path, home: Path) -> bool:
    if not (piece / MARKER).exists():
        return False
    promised = installed_digest(piece)
    try:
        return promised is None or promised == part_digests(piece, home).files
    except OSError:
        return False


def _make(name: str, how: Installer, piece: Piece, folder: Path, say: Say) -> None:
    """Fill a temporary folder beside the piece's place and rename it."""
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
    try:
        how.make(piece, partial, lambda line: say(f"  {line}"))
        marker = {"claw": name, "version": how.version, **piece.facts}
        if name in registry.CLAWS:  # the harness runs on this machine, and its Python adds bytecode
            marker[DIGEST] = part_digests(partial, None).files
        (partial / MARKER).write_text(json.dumps(marker) + "\n", encoding="utf-8")
        partial.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)  # half of it was removed, or it was changed
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
