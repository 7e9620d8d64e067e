"""A rehearsal from beginning to end: commands with faults, then the same command until the run is complete."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.long.rehearsal import rehearsal_checks, thrown_faults
from tests.long.rehearsal.command import Command, Memory, started
from tests.long.rehearsal.stage import Stage
from tests.long.rehearsal.thrown_faults import Fault, LostError, MissedError, Undo

_AGAIN = 3
"""Commands without a fault after which a run must be complete. What breaks in the rehearsed engine does so twice
for each of three steps of a case at the most, and a command makes three attempts at it."""
_PATIENCE = 3600.0
"""Seconds for one command: none is so long, but for one that hangs."""


@dataclass
class Report:
    """What came of it."""

    commands: list[str] = field(default_factory=list)
    """What was thrown at each, and how it ended."""
    thrown: Counter[str] = field(default_factory=Counter)
    memory: list[Memory] = field(default_factory=list)
    seconds: float = 0.0


class Rehearsal:
    """A run, and what is thrown at it."""

    def __init__(self, stage: Stage, draw: Random, say: Callable[[str], None]) -> None:
        """Nothing is started yet.

        Args:
            stage: where.
            draw: what is thrown when.
            say: told of every command.
        """
        self._stage = stage
        self._draw = draw
        self._say = say
        self._ended: dict[Path, str] = {}
        self._before: Command | None = None
        """The last command, of which processes may be left."""
        self.report = Report()

    def run(self, acts: Sequence[Sequence[Fault]], *, tears: bool) -> Report:
        """Throw the faults of each act at a command of its own, then let the run be completed.

        Args:
            acts: what to throw at each command, in this order, at moments that are drawn.
            tears: whether power is lost, and files lose their ends, between the commands.

        Raises:
            LostError: something was lost, or done twice.
        """
        began = time.monotonic()
        for number, act in enumerate(acts):
            self._act(act, share=1 / (len(acts) - number + 1))
            # else the next one comes while what a killed one left behind is at work still
            if tears and self._draw.random() < 0.7:
                self._wait_until_gone()
                self._lose_power()
                self._tear()
        for _ in range(_AGAIN):
            code = self._act((), share=1)
            if code in {0, 1} and rehearsal_checks.is_complete(self._stage):
                break
        else:
            raise LostError(f"the run is not complete after {_AGAIN} undisturbed commands:\n{self._last_words()}")
        self._wait_until_gone()
        rehearsal_checks.whole(self._stage)
        self.report.seconds = time.monotonic() - began
        return self.report

    def _act(self, act: Sequence[Fault], share: float) -> int:
        """One command; returns its exit code.

        Args:
            act: what is thrown at it.
            share: the part of what is left of the run that it may do before the last of them.
        """
        left = len(self._stage.cases) - self._stage.ended()
        points = sorted(self._draw.randrange(max(1, int(left * share))) for _ in act)
        # what ends a command comes last
        ordered = sorted(act, key=lambda fault: fault.ends)
        begin, undo = self._stage.ended(), list[Undo]()
        said = self._stage.output.stat().st_size if self._stage.output.exists() else 0
        with started(
            self._stage.command(), self._stage.environment, self._stage.output, self._stage.ended
        ) as command:
            try:
                for fault, point in zip(ordered, points, strict=True):
                    self._wait(command, begin + point)
                    if command.process.poll() is not None:
                        break
                    self._throw(fault, command, undo)
                code = command.process.wait(_PATIENCE)
            finally:
                for end in undo:
                    end()
        self.report.memory += command.memory.values()
        self._wait_until_gone()
        self._before = command
        self._note(act, code)
        rehearsal_checks.said(self._stage, since=said, code=code)
        self._take_stock()
        return code

    def _take_stock(self) -> None:
        rehearsal_checks.untouched(self._ended)
        self._ended = rehearsal_checks.ended(self._stage.run)

    def _throw(self, fault: Fault, command: Command, undo: list[Undo]) -> None:
        try:
            end = fault.throw(self._stage, command, self._draw)
        except MissedError:
            return
        if end is not None:
            undo.append(end)
        self._stage.ledger.note("thrown", what=fault.name)
        self.report.thrown[fault.name] += 1

    def _note(self, act: Sequence[Fault], code: int) -> None:
        last = self._last_words().strip().splitlines()[-1:]
        names = ", ".join(fault.name for fault in act) or "undisturbed"
        ended = len(rehearsal_checks.ended(self._stage.run))
        line = f"{names}: exit code {code}, {ended} files ended; {' '.join(last)}"
        self.report.commands.append(line)
        self._say(line)

    def _last_words(self) -> str:
        return self._stage.output.read_text(errors="replace")[-3000:]

    def _lose_power(self) -> None:
        self._take_stock()
        cut = thrown_faults.lose_power(self._stage, self._draw)
        self._stage.ledger.note("thrown", what="power lost")
        self.report.thrown["power lost"] += 1
        self._say(f"power lost: {cut} files were not on the disk, or not all of them")
        self._take_stock()

    def _tear(self) -> None:
        self._take_stock()
        torn = thrown_faults.tear(self._stage.run, self._draw)
        number = len(self._stage.run.journal.read().entries)
        self._stage.ledger.note("thrown", what="torn", torn=torn, journal=number)
        self.report.thrown["torn"] += 1
        self._say(f"torn: {', '.join(torn)}")
        self._ended = rehearsal_checks.ended(self._stage.run)

    def _wait(self, command: Command, cases: int) -> None:
        """Until so many cases have ended, and for a moment more."""
        while self._stage.ended() < cases and command.process.poll() is None:
            time.sleep(0.02)
        time.sleep(self._draw.random() / 4)

    def _wait_until_gone(self) -> None:
        """What the last command left behind, if it was killed, ends by itself."""
        deadline = time.monotonic() + _PATIENCE
        while self._before is not None and self._before.left_behind():
            if time.monotonic() > deadline:
                raise LostError("processes of a killed controller do not end")
            time.sleep(0.05)
