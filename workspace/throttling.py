"""A registry that throttles: every process leaves it alone until it may be asked again.

Which processes were told is chance, and each attempt may count against the limit. So whoever is told writes it
down where all look before they pull.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.pulling import Fault, PullError
from workspace.registry import Throttle, registry_of, throttle_of

_UNTOLD = (15.0, 600.0)
"""Seconds to the next attempt where the registry does not tell; they double from the first to the second."""
_LONGEST = 7 * 3600.0
"""Seconds that a registry may hold pulls back: the longest window in use is the hub's, of six hours."""
_LONGEST_UNTOLD = 3600.0
"""The same, where it tells nothing at all."""


class HeldBack:
    """Whether an image's registry may be asked, for one pull of it."""

    def __init__(self, home: Path, name: str, wait: Callable[[float], None]) -> None:
        """Nothing is read or written yet.

        Args:
            home: the folder that all processes on this machine share.
            name: the image's.
            wait: lets seconds pass.
        """
        self._name = name
        self._wait = wait
        self._registry = registry_of(name)
        self._path = home / "held-back" / f"{self._registry.replace(':', '_')}.json"
        self._times = 0
        self._first = 0.0

    def until(self) -> dict[str, Any] | None:
        """What is written down of its present limit, None where it may be asked."""
        try:
            hold: dict[str, Any] = json.loads(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return hold if float(hold["until"]) > time.time() else None

    def sit_out(self, say: Callable[[str], None]) -> None:
        """Wait until it may be asked, and tell the user when that is."""
        while (hold := self.until()) is not None:
            until = float(hold["until"])
            goes_on = "it goes on" if hold["told"] else "it does not tell until when; the next attempt is"
            say(f"{hold['why']}: {goes_on} at {_clock(until)}, in {until - time.time():.0f} s")
            while (left := until - time.time()) > 0:
                self._wait(min(left, 1.0))

    def hold_back(self, said: str) -> None:
        """It refused: write down until when it is left alone.

        Args:
            said: the engine's words.

        Raises:
            PullError: that is too long to wait.
        """
        throttle = throttle_of(self._name, said)
        now = time.time()
        self._first = self._first or now
        until = throttle.until or now + min(_UNTOLD[1], _UNTOLD[0] * 2**self._times)
        self._times += 1
        why = _limit(self._registry, throttle)
        if until - self._first > (_LONGEST if throttle.until or throttle.window else _LONGEST_UNTOLD):
            raise PullError(Fault.THROTTLED, f"{why} until {_clock(until)}, which is too long to wait ({said})")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(json.dumps({"until": until, "told": throttle.until is not None, "why": why}))
        fresh.replace(self._path)


def _limit(registry: str, throttle: Throttle) -> str:
    """What keeps images from being pulled, for the user."""
    told = "429"
    if throttle.pulls is not None and throttle.window is not None:
        told += f": {throttle.pulls} in {throttle.window / 3600:g} h"
    if registry == "docker.io":
        told += "; `docker login` allows more"
    return f"{registry} lets no more images be pulled ({told})"


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment).astimezone().isoformat(" ", "seconds")
