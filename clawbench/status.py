"""How a run stands, told from its folder alone: for runs that are at work in another process, ended or killed.

Nothing is written, and nothing of the run is held for longer than a look takes. Numbers come from the cases'
folders, times from the journal, and what is being done at this moment from what the workers say.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from clawbench.accounts import Spent
from clawbench.pace import Rate, left_of, rate_of, seconds
from clawbench.progress import Saying, sayings
from evaluation.outcomes import POLICY, Outcome
from records.case import METADATA, CaseFolder, folder_name
from records.journal import Reading
from records.plan import PlannedCase
from records.run import RunDirectory

LATEST = 5
"""Errors that are told of."""
_OUTCOMES = tuple(Outcome)


@dataclass(frozen=True)
class Running:
    """A case that is being worked on."""

    case: str
    worker: str
    doing: str
    step_seconds: float
    """For how long the present step has been going on."""
    case_seconds: float | None
    """For how long the case has."""


@dataclass(frozen=True)
class Broken:
    """A case that ended by what is not its claw's doing, and is run again by the same command."""

    case: str
    time: str
    detail: str


@dataclass(frozen=True)
class RunStatus:
    """What can be said of a run at one moment."""

    run_id: str
    state: str
    """`running`, `ended`, `interrupted`, `killed` (its last command left no word), `not begun`."""
    created: str
    model: str
    claws: list[str]
    planned: int
    """Cases that were ever asked for."""
    done: int
    """Those that have an outcome which stays."""
    errors: int
    """Those that broke, and are neither at work nor run again yet."""
    outcomes: dict[str, dict[str, int]]
    """How many cases of each claw have which outcome."""
    running: list[Running]
    spent: Decimal | None
    """US dollars; None where nothing could cost anything, or nobody counts."""
    spend_limit: str | None
    left: int
    """Cases that the last command still has before it, those at work included."""
    rate: Rate | None
    """None where no case ended in the last command."""
    broken: list[Broken]
    """The latest."""
    torn: int
    """Lines of the journal that are not whole."""
    unreadable: list[str]
    """The metadata that the system would not give, each with the reason; such a case counts as not done."""
    last: str
    """When the journal's last event was."""

    @property
    def waiting(self) -> int:
        """Cases that were asked for and are not begun, or not ended and not at work."""
        return max(0, self.planned - self.done - self.errors - len(self.running))

    @property
    def resolved(self) -> int:
        """Cases that the official harness resolved."""
        return sum(counts.get(Outcome.RESOLVED, 0) for counts in self.outcomes.values())

    @property
    def seconds_left(self) -> float | None:
        """How long the last command goes on if it goes on like lately; None where that can't be told."""
        if self.state != "running" or self.rate is None:
            return None
        return 3600 * self.left / self.rate.per_hour

    def facts(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return {
            **asdict(self),
            "spent": str(self.spent) if self.spent is not None else None,
            "rate": {**asdict(self.rate), "per_hour": round(self.rate.per_hour, 2)} if self.rate else None,
            "waiting": self.waiting,
            "resolved": self.resolved,
            "seconds_left": self.seconds_left,
        }


class Looker:
    """Looks at one run as often as asked; what has not changed since is not read again."""

    def __init__(self, run: RunDirectory) -> None:
        """Name the run; nothing is read yet."""
        self._run = run
        self._spent = Spent(run)
        self._known: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {}

    def look(self) -> RunStatus:
        """How the run stands now.

        Raises:
            RunError, PlanError: its manifest or plan is none.
            OSError: it can't be read.
        """
        run, now = self._run, time.time()
        manifest = run.manifest()
        journal = run.journal.read()
        is_running = run.is_running
        unreadable: list[str] = []
        metadata = dict(self._metadata(unreadable))
        planned = set(run.plan.cases()) or set(metadata)
        outcomes = {case: Outcome(facts["outcome"]) for case, facts in metadata.items()}
        done = {case for case, outcome in outcomes.items() if not POLICY[outcome].run_again}
        running = _running(sayings(run.path), journal, now) if is_running else []
        at_it = {one.case for one in running}
        broken = [case for case in outcomes.keys() - done if case_id(case) not in at_it]
        return RunStatus(
            run_id=run.run_id,
            state=state_of(journal, is_running=is_running),
            created=str(manifest.get("created", "")),
            model=str(manifest["settings"].get("model", "")),
            claws=sorted({case.claw for case in planned}),
            planned=len(planned),
            done=len(done),
            errors=len(broken),
            outcomes=_by_contender(metadata.values()),
            running=running,
            spent=self._spent.total() if _could_cost(manifest["settings"]) else None,
            spend_limit=(manifest.get("limits") or {}).get("spend_limit"),
            left=left_of(journal),
            rate=rate_of(journal, now if is_running else None),
            broken=_latest(broken, metadata),
            torn=len(journal.torn),
            unreadable=unreadable,
            last=journal.entries[-1].time if journal.entries else "",
        )

    def _metadata(self, unreadable: list[str]) -> Iterable[tuple[PlannedCase, dict[str, Any]]]:
        for folder in self._run.cases():
            try:
                facts = self._of(folder)
            except OSError as error:  # of one case: the others are still told of
                unreadable.append(f"{folder.path / METADATA}: {error.strerror}")
                continue
            if facts is not None:
                yield PlannedCase(folder.claw, folder.instance_id, folder.sample), facts

    def _of(self, folder: CaseFolder) -> dict[str, Any] | None:
        path = folder.path / METADATA
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        held = self._known.get(str(path))
        if held is not None and held[0] == mark:
            return held[1]
        metadata = folder.metadata()
        if metadata is None or metadata["outcome"] not in _OUTCOMES:
            return None
        told = {"contender": folder.claw, "detail": "", "finished": "", **metadata}
        facts = {name: str(told[name]) for name in ("outcome", "contender", "detail", "finished")}
        self._known[str(path)] = (mark, facts)
        return facts


def case_id(case: PlannedCase) -> str:
    """A case's id, as everywhere."""
    return f"{case.claw}-{folder_name(case.instance_id, case.sample)}"


def _running(said: Iterable[Saying], journal: Reading, now: float) -> list[Running]:
    begun = {
        case_id(entry.case): seconds(entry.time)
        for entry in journal.entries
        if entry.case is not None and entry.event == "begun"
    }
    return [
        Running(
            one.case_id,
            one.worker,
            one.doing,
            step_seconds=round(max(0.0, now - one.since), 1),
            case_seconds=round(max(0.0, now - begun[one.case_id]), 1) if one.case_id in begun else None,
        )
        for one in said
    ]


def state_of(journal: Reading, *, is_running: bool) -> str:
    """In which state a run is, as `RunStatus` has it."""
    if is_running:
        return "running"
    commands = journal.of_run("started", "ended", "interrupted")
    if not commands:
        return "not begun"
    return "killed" if commands[-1].event == "started" else commands[-1].event


def _by_contender(metadata: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for facts in metadata:
        counts.setdefault(facts["contender"], Counter())[facts["outcome"]] += 1
    return {name: dict(counts[name]) for name in sorted(counts)}


def _could_cost(settings: dict[str, Any]) -> bool:
    served = settings.get("served") or {}
    return settings.get("gateway") != "off" and served.get("behind") is not None


def _latest(broken: Iterable[PlannedCase], metadata: dict[PlannedCase, dict[str, Any]]) -> list[Broken]:
    found = [Broken(case_id(case), metadata[case]["finished"], metadata[case]["detail"]) for case in broken]
    return sorted(found, key=lambda one: (one.time, one.case), reverse=True)[:LATEST]
