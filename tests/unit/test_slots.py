"""Slots between processes: never more holders than slots, and a dead process holds none."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from support.bench_run import ROOT
from support.waiting import wait_for

from clawbench.run.slots import Slots

VISITOR = """
import os, sys
from contextlib import nullcontext
from pathlib import Path
from clawbench.run.slots import Slots

folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for visit in range(int(sys.argv[4])):
    with Slots(folder / "slots", count).turn(nullcontext):
        (folder / "inside" / name).touch()
        there = max(len(os.listdir(folder / "inside")) for _ in range(50))
        (folder / "inside" / name).unlink()
    with (folder / "seen").open("a") as seen:
        seen.write(f"{there}\\n")
"""


def visitor(folder: Path, name: str, count: int, visits: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", VISITOR, str(folder), name, str(count), str(visits)]
    return subprocess.Popen(words, cwd=ROOT)


class WaitingError(Exception):
    """A process would have to wait."""


def unexpected() -> AbstractContextManager[None]:
    raise WaitingError


@pytest.mark.parametrize("count", [1, 3])
def test_never_more_at_once_over_all_processes(tmp_path: Path, count: int) -> None:
    (tmp_path / "inside").mkdir()
    processes = [visitor(tmp_path, str(number), count, 4) for number in range(5)]
    assert [process.wait(600) for process in processes] == [0] * 5
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert len(seen) == 20
    assert max(seen) <= count


def is_free(slots: Slots) -> bool:
    """Whether a slot can be had without waiting."""
    try:
        with slots.turn(unexpected):
            return True
    except WaitingError:
        return False


def test_a_slot_may_be_given_back_before_the_end(tmp_path: Path) -> None:
    slots = Slots(tmp_path, 1)
    with slots.turn(unexpected) as slot:
        assert not is_free(slots)
        slot.give_back()
        with slots.turn(unexpected):
            slot.give_back()
            assert not is_free(slots)


def test_a_killed_process_holds_no_slot(tmp_path: Path) -> None:
    holder = (
        "import sys, time; from contextlib import nullcontext; from pathlib import Path;"
        "from clawbench.run.slots import Slots;"
        "turn = Slots(Path(sys.argv[1]), 1).turn(nullcontext); turn.__enter__(); print('held', flush=True);"
        "time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    slots = Slots(tmp_path, 1)
    assert not is_free(slots)
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: is_free(slots), "the slot of the killed process is free")


def test_runs_with_different_numbers_share_the_slots(tmp_path: Path) -> None:
    few, many = Slots(tmp_path, 1), Slots(tmp_path, 3)
    with few.turn(unexpected):
        assert (is_free(few), is_free(many)) == (False, True)
