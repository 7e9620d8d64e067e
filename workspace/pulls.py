"""Pulling the images of a run: once each over all processes, few at once, patiently, and written down.

Locks in a folder that all workers share let one process pull an image while others that want it wait, and let a
few pulls go on at once. A registry that throttles holds back every pull from it, whichever process was told. What
was pulled is written down, because a pulled image carries no label of ours, and only what is ours may be removed.
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound
from filelock import FileLock, Timeout

from engine.pulling import PATIENCE, Fault, PullError, pull
from workspace.inventory import Inventory, home_lock, image_lock
from workspace.throttling import HeldBack

AT_ONCE = 3
"""Pulls at once over all processes. Each downloads three layers at once by the engine's default, which fills most
lines, and unpacking is bound by the disk."""
_ATTEMPTS = 6
"""Of a pull that breaks off. With the waits between them they cover about a minute."""
_LONGEST = 60.0
"""Seconds between two attempts at the most."""
_LOOK = 0.2
"""Seconds between two looks at a lock that another process has."""
_TELL = 5.0
"""Seconds between two words on how far a pull is."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Pulls:
    """One process's way to pull images."""

    client: docker.DockerClient
    home: Path
    """The folder that all processes on this machine share."""
    platform: str | None = None
    """As in `linux/amd64`; None: the engine's own."""
    wait: Callable[[float], None] = time.sleep
    """Lets seconds pass; what it raises gives the pull up."""
    first_wait: float = 2.0
    """Seconds, at the most, before the second attempt; they double with each."""
    patience: float = PATIENCE
    """Seconds without a word from the engine."""

    def is_here(self, name: str) -> bool:
        """Whether the engine has an image of that name, for the platform."""
        try:
            found = self.client.images.get(name).attrs
        except ImageNotFound:
            return False
        except APIError as error:
            if error.status_code == 400:  # a name with capitals is no reference at all
                return False
            raise
        return self.platform is None or self.platform.split("/")[:2] == [found["Os"], found["Architecture"]]

    def pull(self, name: str, say: Say) -> None:
        """Have the engine pull an image, unless it has it, or another process pulled it meanwhile.

        Args:
            name: of the image.
            say: told of waits, attempts and how far it is.

        Raises:
            PullError: there is no such image, it is denied, or every attempt broke off.
            OSError: with ENOSPC, the engine's disk is full.
        """
        with self._one_of([image_lock(self.home, name)], say, f"waiting for another process that pulls {name}"):
            if self.is_here(name):
                return
            try:
                self._until_done(name, say)
            except PullError as error:
                if error.fault is Fault.FULL:
                    raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {error}", name) from error
                raise
            Inventory(self.client, self.home).note(name)

    def _until_done(self, name: str, say: Say) -> None:
        broken = 0
        registry = HeldBack(self.home, name, self.wait)
        slots = [home_lock(self.home, f"pull-slot-{number}") for number in range(AT_ONCE)]
        while True:
            registry.sit_out(say)
            try:
                with self._one_of(slots, say, f"waiting to pull {name}: {AT_ONCE} pulls are under way"):
                    if registry.until() is None:
                        say(f"pulling {name}")
                        heard = _Told(name, say, self.wait).hear
                        pull(self.client, name, platform=self.platform, patience=self.patience, heard=heard)
                        return
            except PullError as error:
                if error.fault is Fault.THROTTLED:
                    registry.hold_back(str(error))
                    continue
                broken += 1
                if error.fault is not Fault.BROKEN or broken == _ATTEMPTS:
                    raise
                # not all at once: whatever broke this one broke others as well
                pause = min(_LONGEST, self.first_wait * 2 ** (broken - 1)) * random.uniform(0.5, 1)  # noqa: S311
                say(f"pulling {name} broke off ({error}); attempt {broken + 1} of {_ATTEMPTS} in {pause:.0f} s")
                self.wait(pause)

    @contextmanager
    def _one_of(self, locks: Sequence[FileLock], say: Say, waiting: str) -> Iterator[None]:
        """Hold one of some locks, whichever is free first."""
        told = False
        while (held := next((lock for lock in locks if _taken(lock)), None)) is None:
            if not told:
                say(waiting)
                told = True
            self.wait(_LOOK)
        try:
            yield
        finally:
            held.release()


def _taken(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


class _Told:
    """Tells how far a pull is, a line every few seconds."""

    def __init__(self, name: str, say: Say, wait: Callable[[float], None]) -> None:
        self._name, self._say, self._wait = name, say, wait
        self._last = time.monotonic()
        self._layers: dict[str, tuple[int, int]] = {}

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take note of one event (raises what `wait` raises)."""
        self._wait(0)
        status, layer, detail = event.get("status", ""), event.get("id", ""), event.get("progressDetail") or {}
        if status == "Downloading" and "total" in detail:
            self._layers[layer] = (int(detail["current"]), int(detail["total"]))
        elif layer in self._layers and status == "Download complete":
            self._layers[layer] = (self._layers[layer][1],) * 2
        now = time.monotonic()
        if now - self._last < _TELL:
            return
        self._last = now
        have = sum(current for current, _ in self._layers.values()) / 1e6
        total = sum(total for _, total in self._layers.values()) / 1e6
        doing = f"{have:.0f} of {total:.0f} MB" if have < total else status.lower()
        self._say(f"pulling {self._name}: {doing}")
