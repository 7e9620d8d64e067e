"""How long cases took on this machine: what the next run is ordered by. No part of any run, it may be lost.

One small file per model, as a model's speed is most of what a case takes. Each finished case replaces its entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from records.files import write_atomically

_NOT_ITS_OWN = {"image", "waiting"}
"""Steps whose time says nothing of how long the case takes another time."""


class Durations:
    """The seconds of finished cases, by instance and contender."""

    def __init__(self, folder: Path, model: str) -> None:
        """Name the file; nothing is read or made.

        Args:
            folder: of all models' files.
            model: as numbers are attributed to it.
        """
        self._folder = folder
        self._path = folder / (re.sub(r"[^A-Za-z0-9._-]", "-", model)[:150] + ".json")

    def note(self, instance_id: str, contender: str, seconds: Mapping[str, float]) -> None:
        """Keep what a case took, by step, in place of what it took before (raises OSError)."""
        took = sum(spent for name, spent in seconds.items() if name not in _NOT_ITS_OWN)
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path.with_suffix(".lock")):
            known = _read(self._path)
            known.setdefault(instance_id, {})[contender] = round(took, 1)
            write_atomically(self._path, json.dumps(known).encode())

    def by_instance(self) -> dict[str, float]:
        """What a case took on each instance, on the average of its contenders, with this model.

        Where nothing is known with this model, it is what cases took with others: which instances are the long
        ones is the same then as well, more or less.
        """
        return _means(_read(self._path)) or self._with_others()

    def _with_others(self) -> dict[str, float]:
        found: dict[str, dict[str, float]] = {}
        for path in sorted(self._folder.glob("*.json")):
            for instance_id, seconds in _means(_read(path)).items():
                found.setdefault(instance_id, {})[path.stem] = seconds
        return _means(found)


def _means(known: dict[str, dict[str, float]]) -> dict[str, float]:
    return {name: sum(taken.values()) / len(taken) for name, taken in known.items() if taken}


def _read(path: Path) -> dict[str, dict[str, float]]:
    """What a file says; one that is damaged says nothing."""
    try:
        known = json.loads(path.read_bytes())
        return {
            str(name): {str(contender): float(seconds) for contender, seconds in taken.items()}
            for name, taken in known.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
