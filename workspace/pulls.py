"""Pull the images of a run: each once and only a few at a time, over all processes on this machine.

File locks let one process pull an image while others that want it wait. What was pulled is recorded, because a
pulled image carries no label of ours and only our own images may be removed.
"""

from __future__ import annotations

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

from common.image_pull import PATIENCE, PullError, PullThrottledError, pull
from workspace.inventory import Inventory, home_lock, image_lock

AT_ONCE = 3
"""Pulls at once over all processes. The engine downloads three layers of each at a time, which fills most lines,
and unpacking is bound by the disk."""
_ATTEMPTS = 6
"""Of a pull that fails. With the pauses between them they cover about a minute."""
_THROTTLED_ATTEMPTS = 14
"""Of a pull that meets a rate limit. They cover the better part of an hour."""
_LONGEST_PAUSE = 900.0
"""Seconds."""
_LOCK_POLL = 0.2
"""Seconds between two attempts to get a lock that another process holds."""
_REPORT_EVERY = 5.0
"""Seconds between two progress lines."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Pulls:
    """How this process pulls images."""

    client: docker.DockerClient
    home: Path
    """The folder that all processes on this machine share."""
    platform: str | None = None
    """Such as `linux/amd64`; None is the engine's own."""
    wait: Callable[[float], None] = time.sleep
    """Waits some seconds; if it raises, the pull is given up."""
    first_pause: float = 2.0
    """Seconds, at most, before the second attempt; the pause doubles with each further attempt."""
    patience: float = PATIENCE
    """Seconds of silence from the engine after which an attempt has failed."""

    def is_here(self, name: str) -> bool:
        """Whether the engine has an image of this name, for the platform."""
        try:
            found = self.client.images.get(name).attrs
        except ImageNotFound:
            return False
        except APIError as error:
            if error.status_code == 400:  # a name with capitals is no valid reference
                return False
            raise
        return self.platform is None or self.platform.split("/")[:2] == [found["Os"], found["Architecture"]]

    def pull(self, name: str, say: Say) -> None:
        """Pull an image, unless the engine has it by now.

        Args:
            name: of the image.
            say: gets a line about waits, attempts and progress.

        Raises:
            PullError: there is no such image, access is denied, or every attempt failed.
        """
        with self._one_of([image_lock(self.home, name)], say, f"waiting for another process that pulls {name}"):
            if not self.is_here(name):
                self._pull_with_retries(name, say)
                Inventory(self.client, self.home).note(name)

    def _pull_with_retries(self, name: str, say: Say) -> None:
        slots = [home_lock(self.home, f"pull-slot-{number}") for number in range(AT_ONCE)]
        attempt = 1
        while True:
            try:
                with self._one_of(slots, say, f"waiting to pull {name}: {AT_ONCE} pulls are under way"):
                    say(f"pulling {name}")
                    progress = _Progress(name, say, self.wait).hear
                    pull(self.client, name, platform=self.platform, patience=self.patience, on_event=progress)
                return
            except PullError as error:
                most = _THROTTLED_ATTEMPTS if isinstance(error, PullThrottledError) else _ATTEMPTS
                if not error.is_retried or attempt >= most:
                    raise
                # with jitter, because whatever broke this pull broke others as well
                pause = min(_LONGEST_PAUSE, self.first_pause * 2 ** (attempt - 1)) * random.uniform(0.5, 1)  # noqa: S311
                attempt += 1
                say(f"pulling {name} failed ({error}); attempt {attempt} of {most} in {pause:.0f} s")
                self.wait(pause)

    @contextmanager
    def _one_of(self, locks: Sequence[FileLock], say: Say, waiting: str) -> Iterator[None]:
        """Hold whichever of some locks is free first."""
        told = False
        while (held := next((lock for lock in locks if _try(lock)), None)) is None:
            if not told:
                say(waiting)
                told = True
            self.wait(_LOCK_POLL)
        try:
            yield
        finally:
            held.release()


def _try(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


class _Progress:
    """Says every few seconds how far a pull is."""

    def __init__(self, name: str, say: Say, wait: Callable[[float], None]) -> None:
        self._name, self._say, self._wait = name, say, wait
        self._last = time.monotonic()
        self._layers: dict[str, tuple[int, int]] = {}

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take note of one event of the engine (raises what `wait` raises)."""
        self._wait(0)
        status, layer, detail = event.get("status", ""), event.get("id", ""), event.get("progressDetail") or {}
        if status == "Downloading" and "total" in detail:
            self._layers[layer] = (int(detail["current"]), int(detail["total"]))
        elif layer in self._layers and status == "Download complete":
            self._layers[layer] = (self._layers[layer][1],) * 2
        now = time.monotonic()
        if now - self._last < _REPORT_EVERY:
            return
        self._last = now
        have = sum(current for current, _ in self._layers.values()) / 1e6
        total = sum(total for _, total in self._layers.values()) / 1e6
        doing = f"{have:.0f} of {total:.0f} MB" if have < total else status.lower()
        self._say(f"pulling {self._name}: {doing}")
