"""What `clawbench gold` found out about instances' environments on this machine, in one small file each.

A mark is valid only for the row, the source image, the preparation recipe, the harness and the architecture that it
was made with. If one of these differs, it is another environment, which is not judged yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from evaluation.outcomes import Verdict
from records.files import write_json
from records.journal import now
from records.models import EvalNetwork, GoldMark

FOLDER = "gold"
_DAMAGED = (OSError, ValueError, KeyError, TypeError)
_SHOWN = 3


@dataclass(frozen=True)
class GoldVerdicts:
    """The harness's verdicts on the gold patch, which must resolve the instance, and on no change, which must not."""

    gold: Verdict
    empty: Verdict = Verdict.NOT_JUDGED
    failing_tests: tuple[str, ...] = ()
    """Tests that did not pass with the gold patch."""
    detail: str = ""
    times: int = 1
    """How often the gold patch was judged; the verdict is the first that does not resolve, if there is one."""
    resolved: int | None = None
    """How many of these times it resolved the instance; None if the mark does not say."""
    network: EvalNetwork = "unknown"
    """The network with which the gold patch was judged: none if it resolves without one."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What shows that the environment is broken; () if nothing does so far."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[str]:
        runs = f"resolved in {self.resolved} of {self.times} runs"
        unstable = f": not stable, as it is {runs}" if self.resolved else ""
        if self.gold is not Verdict.RESOLVED:
            tests = ", ".join(self.failing_tests[:_SHOWN])
            more = f" and {len(self.failing_tests) - _SHOWN} more" if len(self.failing_tests) > _SHOWN else ""
            why = f" ({tests}{more})" if tests else f" ({self.detail})" if self.detail else ""
            yield f"the gold patch is {self.gold}{why}{unstable}"
        # an error is fine, too: git refuses an empty patch, and some images have no GNU patch to fall back on; what
        # counts is that it did not resolve the instance
        if self.empty is Verdict.RESOLVED:
            yield f"an empty patch is {self.empty}"


@dataclass(frozen=True)
class Environment:
    """What a mark is valid for."""

    instance_id: str
    row_sha256: str
    source_image: str
    """The id of the source image."""
    preparation: str
    harness: str
    architecture: str

    @property
    def key(self) -> str:
        """A name that is unique to this environment."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{self.instance_id}.{sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Mark:
    """What is known about an environment."""

    environment: Environment
    judged: GoldVerdicts
    when: str
    """The time, in UTC."""

    def facts(self) -> GoldMark:
        """The mark as it appears in manifests."""
        judged = self.judged
        return GoldMark(
            gold=judged.gold,
            empty=judged.empty,
            problems=judged.problems,
            network=judged.network,
            when=self.when,
        )


class Marks:
    """The marks of this machine."""

    def __init__(self, home: Path) -> None:
        """Read and create nothing yet.

        Args:
            home: the folder that all runs on this machine share.
        """
        self._folder = home / FOLDER

    def keep(self, environment: Environment, judged: GoldVerdicts) -> Mark:
        """Save verdicts (raises OSError)."""
        mark = Mark(environment, judged, now())
        row = {"environment": asdict(environment), "judged": asdict(judged), "when": mark.when}
        write_json(self._folder / f"{environment.key}.json", row)
        return mark

    def find(self, environment: Environment) -> Mark | None:
        """What is known about an environment; None if nothing is, or the file is damaged."""
        return _read(self._folder / f"{environment.key}.json")

    def all(self) -> dict[str, list[Mark]]:
        """All marks by instance, the newest last."""
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
        judged = GoldVerdicts(
            Verdict(told["gold"]),
            Verdict(told["empty"]),
            tuple(told["failing_tests"]),
            str(told["detail"]),
            int(told.get("times", 1)),
            told.get("resolved"),
            told.get("network", "unknown"),
        )
        return Mark(Environment(**row["environment"]), judged, str(row["when"]))
    except _DAMAGED:
        return None
