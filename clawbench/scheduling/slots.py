"""How many processes do a thing at once: a queue in a folder, which whoever ends leaves, however it ends.

Each process that comes draws a ticket, a file with the next number that it holds a lock on. It may go ahead when
fewer than so many tickets below its own are still held. So nobody overtakes anybody, and a process that is killed
has given its ticket back: the kernel gives back its lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from filelock import FileLock

from records.files import is_locked

_LOOK_EVERY = 0.2
"""Seconds between two looks of a process that waits."""


class Slots:
    """So many at once, over all processes that name the same folder."""

    def __init__(self, folder: Path, count: int) -> None:
        """Name them; nothing is made before the first ticket is drawn.

        Args:
            folder: the queue's, on a file system of this machine.
            count: how many may be at it at once. Where another process says another number, each minds its own.
        """
        self._folder = folder
        self._count = count

    def draw(self) -> Ticket:
        """Take a ticket, behind all that were drawn before (raises OSError)."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / ".lock"):
            number = max(self._numbers(), default=0) + 1
            handle = os.open(self._folder / str(number), os.O_CREAT | os.O_RDWR, 0o644)
            # before anyone can draw a higher one: only who has that looks at this one
            fcntl.flock(handle, fcntl.LOCK_EX)
        return Ticket(self, number, handle)

    @contextmanager
    def turn(self, waiting: Callable[[], AbstractContextManager[None]]) -> Iterator[Ticket]:
        """Wait for a turn and hold it; the ticket may be given back before the end.

        Args:
            waiting: entered while there is something to wait for.
        """
        ticket = self.draw()
        try:
            if not ticket.is_due:
                with waiting():
                    ticket.wait()
            yield ticket
        finally:
            ticket.give_back()

    def is_turn_of(self, number: int) -> bool:
        """Whether the holder of a ticket may go ahead; once it may, it may as long as it holds it."""
        before = sorted(other for other in self._numbers() if other < number)
        return len(before) < self._count or sum(map(self._is_held, before)) < self._count

    def give_back(self, number: int, handle: int) -> None:
        """Let the next one in."""
        (self._folder / str(number)).unlink(missing_ok=True)
        os.close(handle)

    def _numbers(self) -> Iterator[int]:
        return (int(path.name) for path in self._folder.iterdir() if path.name.isdigit())

    def _is_held(self, number: int) -> bool:
        """Whether a lower ticket's holder is still there; a ticket without one is removed.

        A number is drawn again only when no higher ticket is left, so what is looked at here stays what it is.
        """
        path = self._folder / str(number)
        if is_locked(path):
            return True
        path.unlink(missing_ok=True)
        return False


class Ticket:
    """A place in a queue, held by this process."""

    def __init__(self, slots: Slots, number: int, handle: int) -> None:
        """Use `Slots.draw`."""
        self._slots = slots
        self._number = number
        self._handle: int | None = handle

    @property
    def is_due(self) -> bool:
        """Whether it is its turn."""
        return self._slots.is_turn_of(self._number)

    def wait(self) -> None:
        """Return when it is its turn."""
        while not self.is_due:
            time.sleep(_LOOK_EVERY)

    def give_back(self) -> None:
        """Let the next one in; a second time does nothing."""
        if self._handle is not None:
            self._slots.give_back(self._number, self._handle)
            self._handle = None
