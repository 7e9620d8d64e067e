"""Shows how far a run is while it goes on: one live line on a terminal, or a line per finished case in a log."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Literal, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from records.case_id import CaseId
from records.progress import PAUSED, steps
from records.run_folder import RunDirectory
from records.spent import Spent
from records.status import rate_over
from reports.status_view import duration

Kind = Literal["passed", "failed", "error", "skipped"]
"""How pytest counts a test."""
_STYLES: dict[Kind, str] = {"passed": "green", "failed": "red", "error": "yellow", "skipped": ""}
_SPENT_EVERY = 10.0
"""Seconds between two looks at what the run has spent: each reads all request logs."""


class ProgressPrinter:
    """The controller's view of the run."""

    def __init__(
        self,
        run: RunDirectory,
        out: TextIO,
        *,
        has_price: bool,
        passed: str = "resolved",
        every_case: bool = False,
        summary_every: float = 300.0,
        every: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Show nothing before `start`.

        Args:
            run: the run.
            out: what is printed to, for this printer alone. A terminal gets the live line, anything else a log.
            has_price: whether the model can cost anything.
            passed: the word for tests that passed.
            every_case: whether finished cases are listed on a terminal too.
            summary_every: seconds between two summary lines in a log.
            every: seconds between two looks at the workers.
            clock: seconds since 1970.
        """
        self.console = Console(file=out, force_terminal=out.isatty(), highlight=False)
        self.is_live = out.isatty() and not self.console.is_dumb_terminal
        self.total = 0
        """How many tests the command has selected."""
        self._run = run
        self._has_price = has_price
        self._words: dict[Kind, str] = {
            "passed": passed,
            "failed": "failed",
            "error": "errors",
            "skipped": "skipped",
        }
        self._every_case = every_case
        self._summary_every = summary_every
        self._every = every
        self._clock = clock
        self._kinds: dict[str, Kind] = {}
        self._times: list[float] = []
        self._began = clock()
        self._spending = Spent(run)
        self._spent, self._spent_at = Decimal(0), float("-inf")
        self._stop = threading.Event()
        self._live = Live(
            console=self.console,
            get_renderable=self._live_line,
            refresh_per_second=1,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._thread = threading.Thread(target=self._watch, daemon=True, name="progress")

    def start(self) -> None:
        """Show the live line, or begin to write summaries; say when an outage begins and ends."""
        self._began = self._clock()
        if self.is_live:
            self._live.start(refresh=True)
        self._thread.start()

    def stop(self) -> None:
        """Remove the live line; nothing is printed after this returns. A second call does nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._live.stop()

    def ended(self, test_id: str, kind: Kind, case_id: CaseId | None = None, *, is_new: bool = True) -> None:
        """Count a test, once: a later report of it only corrects its kind.

        Args:
            test_id: the test.
            kind: how it ended.
            case_id: the case that it is, if it is one.
            is_new: whether it was run by this command.
        """
        is_known = test_id in self._kinds
        self._kinds[test_id] = kind
        if is_known or not is_new:
            return
        self._times.append(self._clock())
        if not self.is_live or self._every_case:
            told = self._told(case_id) if case_id is not None else f"{test_id}: {kind}"
            self._print(f"{self._count()} {told}")

    def _told(self, case_id: CaseId) -> str:
        """One line about a case that ended."""
        record = self._run.case(case_id).metadata()
        if record is None:
            return f"{case_id}: no outcome"
        parts = [str(record.outcome), duration(sum(record.seconds.values()))]
        if self._has_price and record.cost is not None and record.cost.held is not None:
            parts.append(f"${record.cost.held:,.4f}")
        return f"{case_id}: {', '.join(parts)}"

    def _count(self) -> str:
        return f"{len(self._kinds):,}/{self.total:,}"

    def _parts(self) -> list[Text]:
        """How far the run is, the most important parts first."""
        kinds = Counter(self._kinds.values())
        parts = [Text(self._count(), "bold")]
        for kind, word in self._words.items():
            if kinds[kind] or kind in ("passed", "failed"):
                parts.append(Text(f"{kinds[kind]:,} {word}", _STYLES[kind] if kinds[kind] else ""))
        now = self._clock()
        if self._has_price:
            parts.append(Text(f"${self._spent_now(now):,.4f}"))
        rate = rate_over(self._times, self._began, now)
        if rate is not None:
            left = (self.total - len(self._kinds)) * rate.seconds / rate.cases
            parts += [Text(f"{rate.per_hour:,.0f}/h"), Text(f"{duration(left)} left")]
        return parts

    def _spent_now(self, now: float) -> Decimal:
        if now - self._spent_at >= _SPENT_EVERY:
            self._spent, self._spent_at = self._spending.total(), now
        return self._spent

    def _at_work(self) -> str:
        """What the workers do: the oldest step first, and those that only wait last."""
        now = self._clock()
        found = sorted(steps(self._run.path), key=lambda step: (step.doing.startswith("waiting"), step.since))
        told = [f"{step.case_id} ({step.doing}, {duration(max(0.0, now - step.since))})" for step in found]
        return f"{len(found)} at work" + (f": {', '.join(told)}" if told else "")

    def line(self) -> Text:
        """The whole view in one line."""
        return Text("  ").join([*self._parts(), Text(self._at_work())])

    def _live_line(self) -> Text:
        """The same, cut to the terminal's width. The `^C` that a terminal echoes must fit behind it."""
        line = self.line()
        line.truncate(self.console.width - 3, overflow="ellipsis")
        return line

    def _watch(self) -> None:
        due, was_paused = self._clock() + self._summary_every, False
        while not self._stop.wait(self._every):
            paused = [step.doing for step in steps(self._run.path) if step.doing.startswith(PAUSED)]
            if bool(paused) != was_paused:
                was_paused = bool(paused)
                self._print(paused[0] if paused else "the outage is over: going on")
            if not self.is_live and self._clock() >= due:
                due += self._summary_every
                self._print(self.line().plain)

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)
