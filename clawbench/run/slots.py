"""Limits how many processes do something at the same time. Each process locks one of several files.

The kernel releases the lock of a process that is killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_LOOK_EVERY = 0.2
"""Seconds between two attempts of a waiting process."""


class Slots:
    """A number of slots, shared by all processes that name the same folder."""

    def __init__(self, folder: Path, count: int) -> None:
        """Create nothing before the first slot is taken.

        Args:
            folder: for the locks, on a local file system.
            count: how many processes may hold a slot at the same time. If processes give different numbers, each uses
                only as many slots as it gave.
        """
        self._paths = [folder / f"{number}.lock" for number in range(count)]

    @contextmanager
    def turn(self, waiting: Callable[[], AbstractContextManager[None]]) -> Iterator[Slot]:
        """Wait for a slot and hold it; it may be released before the context ends.

        Args:
            waiting: entered while all slots are held by others.
        """
        slot = self._free()
        if slot is None:
            with waiting():
                while slot is None:
                    time.sleep(_LOOK_EVERY)
                    slot = self._free()
        try:
            yield slot
        finally:
            slot.give_back()

    def _free(self) -> Slot | None:
        """A slot that was free, now held (raises OSError)."""
        for path in self._paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path, timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            return Slot(lock)
        return None


class Slot:
    """A slot that this process holds."""

    def __init__(self, lock: FileLock) -> None:
        """Wrap a held lock."""
        self._lock = lock

    def give_back(self) -> None:
        """Release the slot; a second call does nothing."""
        self._lock.release()
