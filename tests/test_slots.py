"""A queue between processes: never more at once than may be, nobody overtaken, and the dead hold nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from bench_run import ROOT

from clawbench.scheduling.slots import Slots

VISITOR = """
import os, sys, time
from contextlib import nullcontext
from pathlib import Path
from clawbench.scheduling.slots import Slots

folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for visit in range(int(sys.argv[4])):
    with Slots(folder / "slots", count).turn(nullcontext):
        (folder / "inside" / name).touch()
        there = len(os.listdir(folder / "inside"))
        time.sleep(0.01)
        there = max(there, len(os.listdir(folder / "inside")))
        (folder / "inside" / name).unlink()
    with (folder / "seen").open("a") as seen:
        seen.write(f"{there}\\n")
"""


def visitor(folder: Path, name: str, count: int, visits: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", VISITOR, str(folder), name, str(count), str(visits)]
    return subprocess.Popen(words, cwd=ROOT)


def unexpected() -> AbstractContextManager[None]:
    raise AssertionError("there is nothing to wait for")


@pytest.mark.parametrize("count", [1, 3])
def test_never_more_at_once_over_all_processes_and_each_has_its_turn(tmp_path: Path, count: int) -> None:
    (tmp_path / "inside").mkdir()
    processes = [visitor(tmp_path, str(number), count, 8) for number in range(6)]
    assert [process.wait(600) for process in processes] == [0] * 6
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert len(seen) == 48
    assert max(seen) <= count


def test_whoever_came_first_goes_first(tmp_path: Path) -> None:
    slots = Slots(tmp_path, 2)
    tickets = [slots.draw() for _ in range(5)]
    assert [ticket.is_due for ticket in tickets] == [True, True, False, False, False]
    tickets[0].give_back()
    assert [ticket.is_due for ticket in tickets[1:]] == [True, True, False, False]
    late = slots.draw()
    tickets[2].give_back()
    tickets[1].give_back()
    assert [ticket.is_due for ticket in [*tickets[3:], late]] == [True, True, False]
    for ticket in [*tickets, late]:
        ticket.give_back()
    with slots.turn(unexpected):
        assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["1"]


def test_a_ticket_may_be_given_back_before_the_end(tmp_path: Path) -> None:
    slots = Slots(tmp_path, 1)
    with slots.turn(unexpected) as ticket:
        ticket.give_back()
        with slots.turn(unexpected):
            ticket.give_back()
            assert not slots.draw().is_due


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_process_has_given_its_slot_back(tmp_path: Path) -> None:
    holder = (
        "import sys, time; from pathlib import Path; from clawbench.scheduling.slots import Slots;"
        "ticket = Slots(Path(sys.argv[1]), 1).draw(); print(ticket.is_due, flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", holder, str(tmp_path)]
    first = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"True\n"
    waiting = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"False\n"
    ours = Slots(tmp_path, 1).draw()
    assert not ours.is_due
    for process in (waiting, first):
        assert not ours.is_due
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    until(lambda: ours.is_due)
    ours.give_back()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"], "what the dead held is gone as well"


def test_each_run_minds_its_own_number(tmp_path: Path) -> None:
    """Two runs of one machine with other numbers share the queue."""
    few, many = Slots(tmp_path, 1), Slots(tmp_path, 3)
    with few.turn(nullcontext):
        second, third = few.draw(), many.draw()
        assert (second.is_due, third.is_due) == (False, True)
