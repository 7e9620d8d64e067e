"""Which images the runs on this machine still need, each told by its controller for as long as it lives.

A controller holds a lock beside what it tells. The kernel gives the lock up with the process, whatever ends it, so
what a killed run needed is not needed any more, and nobody has to find out by its process id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

from filelock import FileLock, Timeout


class Needs:
    """One run's say."""

    def __init__(self, home: Path) -> None:
        """Nothing is needed yet; `close` gives it back.

        Args:
            home: the folder that all processes on this machine share.
        """
        self._folder = home / "needed-images"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._folder / f"{os.getpid()}-{token_hex(4)}.json"
        # one thread may close what another opened
        self._lock = FileLock(self._path.with_suffix(".lock"), thread_local=False)
        self._lock.acquire()

    def tell(self, names: Iterable[str]) -> None:
        """Say which images are still needed, by every name that they may have."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(sorted(names)))
        fresh.replace(self._path)

    def of_others(self) -> frozenset[str]:
        """What all other live runs need; what is left of dead ones is removed."""
        needed: set[str] = set()
        for path in self._folder.glob("*.json"):
            if path == self._path:
                continue
            lock = FileLock(path.with_suffix(".lock"))
            try:
                lock.acquire(timeout=0)
            except Timeout:
                needed.update(_read(path))
                continue
            path.unlink(missing_ok=True)
            path.with_suffix(".lock").unlink(missing_ok=True)
            lock.release()
        return frozenset(needed)

    def close(self) -> None:
        """Nothing is needed any more."""
        self._path.unlink(missing_ok=True)
        self._path.with_suffix(".lock").unlink(missing_ok=True)
        self._lock.release()


def _read(path: Path) -> list[str]:
    try:
        found: list[str] = json.loads(path.read_text())
    except FileNotFoundError:
        return []  # it closed at this moment
    return found
