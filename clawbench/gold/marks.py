"""What is known of instances' environments on this machine: a small file for each, in the home of all runs.

A mark holds for what it was made with, and for nothing else: the row, the source image, the way in which images
are prepared, the harness, the engine's architecture. Another of these is another environment, not known yet.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from clawbench.gold.judging import Judged
from evaluation.outcomes import Verdict
from records.files import write_json
from records.journal import now

FOLDER = "gold"
_DAMAGED = (OSError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class Environment:
    """What a mark is of."""

    instance_id: str
    row_sha256: str
    source_image: str
    """Its id."""
    preparation: str
    harness: str
    architecture: str

    @property
    def key(self) -> str:
        """Its name, which another environment does not have."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{self.instance_id}.{sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Mark:
    """What is known of an environment."""

    environment: Environment
    judged: Judged
    when: str
    """UTC."""

    def facts(self) -> dict[str, Any]:
        """The mark as manifests have it."""
        return {
            "gold": self.judged.gold,
            "empty": self.judged.empty,
            "problems": list(self.judged.problems),
            "when": self.when,
        }


class Marks:
    """The marks of this machine."""

    def __init__(self, home: Path) -> None:
        """Nothing is read or made yet.

        Args:
            home: the folder that all runs of this machine share.
        """
        self._folder = home / FOLDER

    def keep(self, environment: Environment, judged: Judged) -> Mark:
        """Write down what the harness said (raises OSError)."""
        mark = Mark(environment, judged, now())
        row = {"environment": asdict(environment), "judged": asdict(judged), "when": mark.when}
        write_json(self._folder / f"{environment.key}.json", row)
        return mark

    def find(self, environment: Environment) -> Mark | None:
        """What is known of an environment; None where nothing is, or the file is damaged."""
        return _read(self._folder / f"{environment.key}.json")

    def all(self) -> dict[str, list[Mark]]:
        """All that is known, by instance, the newest last."""
        found: dict[str, list[Mark]] = {}
        for path in self._folder.glob("*.json"):
            mark = _read(path)
            if mark is not None:
                found.setdefault(mark.environment.instance_id, []).append(mark)
        return {name: sorted(marks, key=lambda mark: mark.when) for name, marks in found.items()}


def _read(path: Path) -> Mark | None:
    try:
        row = json.loads(path.read_bytes())
        told = row["judged"]
        judged = Judged(
            Verdict(told["gold"]), Verdict(told["empty"]), tuple(told["failing_tests"]), str(told["detail"])
        )
        return Mark(Environment(**row["environment"]), judged, str(row["when"]))
    except _DAMAGED:
        return None
