"""The state of a run, read only from its folder, whether it is in progress in another process, has ended or was killed.

Nothing is written, and no lock is held for longer than the read takes. The counts come from the cases' folders, times
and rates from the journal, and the current steps from the workers' progress files.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from evaluation.outcomes import POLICY, Outcome
from records.case_folder import METADATA, CaseFolder
from records.case_id import CaseId
from records.files import RunError
from records.journal import Entry, Reading
from records.progress import Step, steps
from records.run_folder import RunDirectory
from records.spent import Spent

MOST_ERRORS = 5
"""How many of the latest errors are listed."""
WINDOW = 1800.0
"""The recent seconds over which a rate is computed."""
FEWEST = 8
"""The minimum number of cases over which a rate is computed, however long ago they ended."""
ENDED = ("finished", "errored")
"""The events that end a case, unless it is begun again."""


@dataclass(frozen=True)
class Rate:
    """How fast cases have ended recently, errors included."""

    cases: int
    seconds: float
    """The time in which they ended."""

    @property
    def per_hour(self) -> float:
        """Cases per hour."""
        return 3600 * self.cases / self.seconds


@dataclass(frozen=True)
class Running:
    """A case in progress."""

    case: str
    worker: str
    doing: str
    step_seconds: float
    """How long the current step has taken so far."""
    case_seconds: float | None
    """How long the case has taken so far; None if that is unknown."""


@dataclass(frozen=True)
class Broken:
    """A case that ended with an infrastructure error; the same command runs it again."""

    case: str
    time: str
    detail: str


@dataclass(frozen=True)
class RunStatus:
    """The state of a run at one moment."""

    run_id: str
    state: str
    """`running`, `ended`, `interrupted`, `killed` (the last command did not end normally) or `not begun`."""
    created: str
    model: str
    claws: list[str]
    planned: int
    """Cases that any command selected."""
    done: int
    """Cases with a final outcome."""
    errors: int
    """Cases that ended with an error and are not in progress again."""
    outcomes: dict[str, dict[str, int]]
    """The number of cases by claw and outcome."""
    running: list[Running]
    spent: Decimal | None
    """US dollars; None if the model is free or no gateway counts."""
    spend_limit: str | None
    left: int
    """Cases that the last command has not finished, those in progress included."""
    rate: Rate | None
    """None if no case ended in the last command."""
    broken: list[Broken]
    """The latest errors."""
    torn: int
    """Incomplete lines of the journal."""
    unreadable: list[str]
    """The case records that can't be read, with the reasons; such a case does not count as done."""
    last: str
    """When the last event of the journal was."""

    @property
    def waiting(self) -> int:
        """Planned cases that are neither done nor in progress nor ended with an error."""
        return max(0, self.planned - self.done - self.errors - len(self.running))

    @property
    def resolved(self) -> int:
        """Cases that the official harness resolved."""
        return sum(counts.get(Outcome.RESOLVED, 0) for counts in self.outcomes.values())

    @property
    def seconds_left(self) -> float | None:
        """How many more seconds the last command will take at the current rate; None if unknown."""
        if self.state != "running" or self.rate is None:
            return None
        return 3600 * self.left / self.rate.per_hour

    def facts(self) -> dict[str, Any]:
        """The status as JSON values."""
        return {
            **asdict(self),
            "spent": str(self.spent) if self.spent is not None else None,
            "rate": {**asdict(self.rate), "per_hour": round(self.rate.per_hour, 2)} if self.rate else None,
            "waiting": self.waiting,
            "resolved": self.resolved,
            "seconds_left": self.seconds_left,
        }


class _Ended(NamedTuple):
    """The part of a case's record that is kept in memory: there may be thousands of cases."""

    outcome: Outcome
    agent_label: str
    detail: str
    finished: str


class StatusReader:
    """Reads the state of one run repeatedly; records that have not changed are not read again."""

    def __init__(self, run: RunDirectory) -> None:
        """Read nothing yet."""
        self._run = run
        self._spent = Spent(run)
        self._known: dict[CaseId, tuple[tuple[int, int, int], _Ended]] = {}

    def look(self) -> RunStatus:
        """The current state of the run.

        Raises:
            RunError: its manifest or plan can't be understood.
            OSError: one of them can't be read.
        """
        run, now = self._run, time.time()
        manifest = run.manifest()
        journal = run.journal.read()
        is_running = run.is_running
        unreadable: list[str] = []
        ended = dict(self._ended(unreadable))
        planned = set(run.plan.cases()) or set(ended)
        done = {case for case, record in ended.items() if not POLICY[record.outcome].run_again}
        running = _running(steps(run.path), journal, now) if is_running else []
        in_progress = {one.case for one in running}
        broken = {case: ended[case] for case in ended.keys() - done if str(case) not in in_progress}
        return RunStatus(
            run_id=run.run_id,
            state=state_of(journal, is_running=is_running),
            created=manifest.created,
            model=manifest.settings.model,
            claws=sorted({case.claw for case in planned}),
            planned=len(planned),
            done=len(done),
            errors=len(broken),
            outcomes=_by_claw(ended.values()),
            running=running,
            spent=self._spent.total() if manifest.settings.can_cost else None,
            spend_limit=manifest.limits.spend_limit,
            left=left_of(journal),
            rate=rate_of(journal, now if is_running else None),
            broken=_latest(broken),
            torn=len(journal.torn),
            unreadable=unreadable,
            last=journal.entries[-1].time if journal.entries else "",
        )

    def _ended(self, unreadable: list[str]) -> Iterable[tuple[CaseId, _Ended]]:
        for folder in self._run.cases():
            try:
                record = self._record_of(folder)
            except (OSError, RunError) as error:  # the other cases are still reported
                reason = error.strerror if isinstance(error, OSError) else error
                unreadable.append(f"{folder.path / METADATA}: {reason}")
                continue
            if record is not None:
                yield folder.id, record

    def _record_of(self, folder: CaseFolder) -> _Ended | None:
        try:
            stat = (folder.path / METADATA).stat()
        except FileNotFoundError:
            return None
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        known = self._known.get(folder.id)
        if known is not None and known[0] == mark:
            return known[1]
        record = folder.metadata()
        if record is None:
            return None
        ended = _Ended(record.outcome, record.agent_label, record.detail, record.finished)
        self._known[folder.id] = (mark, ended)
        return ended


def _running(found: Iterable[Step], journal: Reading, now: float) -> list[Running]:
    begun = {str(entry.case): seconds(entry.time) for entry in journal.entries if entry.event == "begun"}
    return [
        Running(
            step.case_id,
            step.worker,
            step.doing,
            step_seconds=round(max(0.0, now - step.since), 1),
            case_seconds=round(max(0.0, now - begun[step.case_id]), 1) if step.case_id in begun else None,
        )
        for step in found
    ]


def state_of(journal: Reading, *, is_running: bool) -> str:
    """The state of a run, see `RunStatus.state`."""
    if is_running:
        return "running"
    commands = journal.of_run("started", "ended", "interrupted")
    if not commands:
        return "not begun"
    return "killed" if commands[-1].event == "started" else commands[-1].event


def _by_claw(ended: Iterable[_Ended]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for record in ended:
        counts.setdefault(record.agent_label, Counter())[record.outcome] += 1
    return {name: dict(counts[name]) for name in sorted(counts)}


def _latest(broken: Mapping[CaseId, _Ended]) -> list[Broken]:
    found = [Broken(str(case), record.finished, record.detail) for case, record in broken.items()]
    return sorted(found, key=lambda one: (one.time, one.case), reverse=True)[:MOST_ERRORS]


def seconds(text: str) -> float:
    """A time in a record, as seconds since 1970."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


def _last_command(journal: Reading) -> tuple[Entry | None, dict[CaseId, Entry]]:
    """The start of the last command, and the last event of each case since."""
    started = journal.of_run("started")
    if not started:
        return None, {}
    since = (entry for entry in journal.entries if entry.number > started[-1].number)
    return started[-1], {entry.case: entry for entry in since if entry.case is not None}


def left_of(journal: Reading) -> int:
    """How many cases the last command has not finished, those in progress included."""
    started, last = _last_command(journal)
    if started is None:
        return 0
    return max(0, int(started.facts.get("left", 0)) - sum(entry.event in ENDED for entry in last.values()))


def rate_of(journal: Reading, now: float | None) -> Rate | None:
    """How fast cases have ended recently in the last command; an attempt that was retried is not counted.

    Args:
        journal: the run's journal.
        now: seconds since 1970; None for a command that has ended, whose last event counts as now.

    Returns:
        None if no case ended.
    """
    started, last = _last_command(journal)
    times = sorted(seconds(entry.time) for entry in last.values() if entry.event in ENDED)
    if started is None or not times:
        return None
    return rate_over(times, seconds(started.time), now if now is not None else times[-1])


def rate_over(times: Sequence[float], began: float, until: float) -> Rate | None:
    """How fast cases have ended recently.

    Args:
        times: when they ended, in order, in seconds since 1970, as all times here.
        began: when the first of them could begin.
        until: the end of the time over which the rate is computed.

    Returns:
        None if no case ended.
    """
    if not times:
        return None
    first = max(began, until - WINDOW)
    recent = [moment for moment in times if moment > first]
    if len(recent) < FEWEST:
        recent = list(times[-FEWEST:])
        first = times[-FEWEST - 1] if len(times) > FEWEST else began
    return Rate(len(recent), max(1.0, until - first))
