"""The journal of a run: whole lines whoever writes and whatever is killed, and a chain that shows every change."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_run import ROOT
from support.waiting import wait_for

from records.case_id import CaseId
from records.journal import Journal

WRITER = """
import sys
from pathlib import Path
from records.journal import Journal
journal, n = Journal(Path(sys.argv[1])), 0
while n < int(sys.argv[3]):
    journal.write("step", writer=sys.argv[2], n=n, filling="x" * (n * 997 % 9000))
    n += 1
"""


def a_journal(folder: Path, lines: int = 5) -> Journal:
    journal = Journal(folder / "state.jsonl")
    for number in range(lines):
        journal.write("begun", claw="nanobot", instance_id=f"demo__{number}", sample=1)
    return journal


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    journal = a_journal(tmp_path, 1)
    journal.write("ended", exit_status=0)
    first, second = journal.read().entries
    assert first.case == CaseId("nanobot", "demo__0", 1)
    assert (second.event, second.case, second.facts["exit_status"]) == ("ended", None, 0)
    assert journal.read().of_run("ended") == [second]
    assert not journal.read().torn
    assert not journal.read().unchained


def test_there_is_nothing_before_the_first_event(tmp_path: Path) -> None:
    reading = Journal(tmp_path / "state.jsonl").read()
    assert (reading.entries, reading.torn, reading.unchained, reading.head) == ([], [], [], "")


def test_eight_processes_write_and_some_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    often = 150
    writers = [python(WRITER, str(path), str(number), str(often)) for number in range(8)]
    killed = writers[::2]
    chance = random.Random(8)  # noqa: S311 - any moments will do, the same each time
    for writer in killed:
        its, lines = f'"writer": "{writers.index(writer)}"'.encode(), chance.randint(1, often // 3)
        wait_for(lambda its=its, lines=lines: path.exists() and path.read_bytes().count(its) >= lines)
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        _, error = writer.communicate()
        assert writer in killed or writer.returncode == 0, error
    reading = Journal(path).read()
    assert not reading.unchained
    assert len(reading.torn) <= len(killed)
    for number, writer in enumerate(writers):
        of_it = [entry.facts["n"] for entry in reading.entries if entry.facts["writer"] == str(number)]
        assert of_it == list(range(len(of_it))), "in order, none lost in between"
        assert of_it
        assert writer in killed or len(of_it) == often


@given(st.binary(min_size=1, max_size=60).filter(lambda data: b"\n" not in data))
def test_a_torn_line_stays_alone_and_is_counted(tmp_path_factory: pytest.TempPathFactory, torn: bytes) -> None:
    journal = a_journal(tmp_path_factory.mktemp("journal"), 2)
    with journal.path.open("ab") as file:
        file.write(torn)
    journal.write("ended", exit_status=0)
    journal.write("started")
    reading = journal.read()
    assert [entry.event for entry in reading.entries] == ["begun", "begun", "ended", "started"]
    assert reading.torn == [3]
    assert not reading.unchained


@pytest.mark.parametrize("cut", [1, 30, 150, 4096, 9000])
def test_any_end_may_be_lost_and_the_next_line_is_whole(tmp_path: Path, cut: int) -> None:
    journal = a_journal(tmp_path, 3)
    journal.write("long", text="y" * 9000)
    whole = len(journal.read().entries)
    os.truncate(journal.path, journal.path.stat().st_size - cut)
    journal.write("ended", exit_status=1)
    reading = journal.read()
    assert [entry.event for entry in reading.entries][-1] == "ended"
    # where only the end of the line was lost, the line is whole all the same
    assert len(reading.torn) == int(len(reading.entries) <= whole)
    assert not reading.unchained


FULL = """
import resource, sys
from pathlib import Path
from records.journal import Journal
path = Path(sys.argv[1])
limit = path.stat().st_size + 40
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
Journal(path).write("ended", exit_status=0)
"""


def test_a_disk_that_is_full_in_the_middle_of_a_line_leaves_nothing_of_it(tmp_path: Path) -> None:
    journal = a_journal(tmp_path)
    before = journal.path.read_bytes()
    full = python(FULL, str(journal.path))
    _, error = full.communicate()
    assert full.returncode == 1
    assert "No space left on device" in error
    assert journal.path.read_bytes() == before


def test_a_journal_that_can_not_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state.jsonl").mkdir()
    with pytest.raises(OSError, match=r"state\.jsonl"):
        Journal(tmp_path / "state.jsonl").write("ended")


def removed(lines: list[bytes]) -> None:
    del lines[2]


def changed(lines: list[bytes]) -> None:
    lines[2] = lines[2].replace(b"demo__2", b"demo__9")


def swapped(lines: list[bytes]) -> None:
    lines[1], lines[2] = lines[2], lines[1]


def put_in(lines: list[bytes]) -> None:
    lines.insert(2, lines[2])


def first_gone(lines: list[bytes]) -> None:
    del lines[0]


def torn_on_purpose(lines: list[bytes]) -> None:
    lines[2] = lines[2][:20] + b"\n"


@pytest.mark.parametrize("attack", [removed, changed, swapped, put_in, first_gone, torn_on_purpose])
def test_a_line_that_is_not_as_it_was_written_shows(tmp_path: Path, attack: Callable[[list[bytes]], None]) -> None:
    journal = a_journal(tmp_path)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    attack(lines)
    journal.path.write_bytes(b"".join(lines))
    assert journal.read().unchained


def test_a_tail_that_was_cut_off_shows_in_the_digest_of_the_last_line(tmp_path: Path) -> None:
    journal = a_journal(tmp_path)
    before = journal.read().head
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join(lines[:-1]))
    assert not journal.read().unchained
    assert journal.read().head not in {before, ""}


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "[" * 100_000,
        '{"event": 1, "time": "2026-11-30T10:00:00Z"}',
        '{"event": "x", "time": "today"}',
        '{"event": "x", "time": "2026-11-30T10:00:00Z", "claw": "c", "instance_id": 1}',
        '{"event": "x", "time": "2026-11-30T10:00:00Z", "claw": "c", "instance_id": "i", "sample": "s"}',
    ],
    ids=["no facts", "a list", "too deep", "a number", "no time", "no instance", "no sample"],
)
def test_what_is_no_event_is_not_whole(tmp_path: Path, line: str) -> None:
    journal = a_journal(tmp_path, 1)
    with journal.path.open("a") as file:
        file.write(f"{line}\n")
    assert journal.read().torn == [2]
    assert json.loads(journal.path.read_text().splitlines()[0])["event"] == "begun"
