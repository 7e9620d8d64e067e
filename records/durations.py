"""How long cases took on this machine. The order of the next run is based on it. Losing it does no harm.

There is one small file for each model, as a case's time depends mostly on the model's speed. Each finished case
replaces its entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from records.files import write_atomically

_NOT_ITS_OWN = {"image", "waiting"}
"""Steps whose time says nothing about how long the case will take next time."""


class Durations:
    """The seconds of finished cases, by instance and agent label."""

    def __init__(self, folder: Path, model: str) -> None:
        """Read and write nothing yet.

        Args:
            folder: the folder of all models' files.
            model: the model, as given by `--model`.
        """
        self._folder = folder
        self._path = folder / (re.sub(r"[^A-Za-z0-9._-]", "-", model)[:150] + ".json")

    def note(self, instance_id: str, agent_label: str, seconds: Mapping[str, float]) -> None:
        """Replace the time that a case took; `seconds` are by step (raises OSError)."""
        took = sum(spent for name, spent in seconds.items() if name not in _NOT_ITS_OWN)
        self._folder.mkdir(parents=True, exist_ok=True)
        from filelock import FileLock  # noqa: PLC0415 - it imports asyncio, which is slow

        with FileLock(self._path.with_suffix(".lock")):
            known = _read(self._path)
            known.setdefault(instance_id, {})[agent_label] = round(took, 1)
            write_atomically(self._path, json.dumps(known).encode())

    def by_instance(self) -> dict[str, float]:
        """The average seconds of a case of each instance with this model, over all claws.

        If nothing is known about this model, it is the average over the other models: more or less the same instances
        take long with each.
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
    """The content of a file; empty if it is damaged."""
    try:
        known = json.loads(path.read_bytes())
        return {
            str(name): {str(agent_label): float(seconds) for agent_label, seconds in taken.items()}
            for name, taken in known.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
