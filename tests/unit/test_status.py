"""`clawbench status` and `clawbench runs`: from another process, at any moment of a run; nothing is written."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.bench_run import ROOT
from support.made_up import CLAW, made_up_record
from support.waiting import wait_for
from typer.testing import CliRunner

from clawbench.cli import app
from records.case_id import CaseId
from records.journal import Journal
from records.models import RunManifest
from records.progress import Progress, steps
from records.run_folder import RunDirectory, RunError
from records.spent import Spent
from records.status import WINDOW, Rate, StatusReader, seconds
from reports.status_view import duration
from tests.long.rehearsal.command import Command, started
from tests.long.rehearsal.stage import Stage, rehearsed

CASES = 700
"""So many that the command is far from its end when all has been looked at."""
MANIFEST: dict[str, Any] = {
    "settings": {"model": "acme/big", "served": {"behind": {"provider": "acme"}}},
    "claws": {"nanobot": CLAW},
    "limits": {"spend_limit": "10"},
}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "made")
    made.open(RunManifest.model_validate(MANIFEST))
    return made


def asked(number: int) -> CaseId:
    return CaseId("nanobot", f"acme__tool-{number}")


def finish(run: RunDirectory, case: CaseId, outcome: str = "resolved", detail: str = "") -> None:
    folder = run.case(case)
    run.note(folder, "begun", attempt=folder.attempt + 1)
    folder.begin()
    facts = {"outcome": outcome, "detail": detail, "finished": "2026-01-01T00:00:00Z"}
    run.finish(folder, made_up_record(case, **facts))


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    }


def told(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[tuple[Stage, Command]]:
    """A real command on many cases, but for the engine; some of them have ended."""
    stage = rehearsed(tmp_path, CASES, 2, seed=0, breaks=0.0)
    with started(stage.command(), stage.environment, stage.output, stage.ended) as command:
        wait_for(lambda: len(stage.run.journal.read().entries) > 30)
        yield stage, command


class Watching:
    """`clawbench status --watch` in a terminal, as a user has it."""

    def __init__(self, stage: Stage) -> None:
        self.terminal, its = os.openpty()
        code = "from clawbench.cli import app; app()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "status", str(stage.run.path), "--watch"],
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"},
            stdin=its,
            stdout=its,
            stderr=its,
        )
        os.close(its)
        self.seen = b""

    def see(self, text: str) -> None:
        while text.encode() not in self.seen:
            self.seen += os.read(self.terminal, 1 << 16)

    def end(self) -> int:
        with suppress(OSError):  # which a terminal without a process gives
            while more := os.read(self.terminal, 1 << 16):
                self.seen += more
        os.close(self.terminal)
        return self.process.wait()


def test_a_run_at_work_is_told_of_and_left_alone_and_so_is_a_killed_one(
    at_work: tuple[Stage, Command],
) -> None:
    stage, command = at_work
    status = told("status", str(stage.run.path))
    assert status["state"] == "running"
    assert status["planned"] == CASES
    assert 0 < status["done"] < CASES
    assert status["done"] + status["waiting"] + len(status["running"]) == CASES
    assert status["rate"]["cases"] > 0
    assert status["seconds_left"] > 0
    assert sum(sum(counts.values()) for counts in status["outcomes"].values()) == status["done"]
    wait_for(lambda: bool(StatusReader(stage.run).look().running))
    (row,) = json.loads(CliRunner().invoke(app, ["runs", "--artifacts", str(stage.artifacts), "--json"]).stdout)
    assert (row["run_id"], row["state"]) == (stage.run.run_id, "running")
    assert row["size"] > 10_000
    left, stays = Watching(stage), Watching(stage)
    left.see(f"run {stage.run.run_id}: running")
    left.process.send_signal(signal.SIGINT)
    assert left.end() == 0, "who has seen enough may go"
    assert b"Traceback" not in left.seen
    stays.see(f"run {stage.run.run_id}: running")
    assert stage.run.is_running
    command.kill(command.process.pid)
    command.process.wait()
    stays.see(f"run {stage.run.run_id}: killed")
    assert stays.end() == 0, "there is nothing to wait for any more"
    wait_for(lambda: not command.left_behind())  # its workers end when they find it gone
    before = files(stage.run.path)
    status = told("status", str(stage.run.path))
    assert (status["state"], status["running"], status["seconds_left"]) == ("killed", [], None)
    assert CliRunner().invoke(app, ["verify", str(stage.run.path)]).exit_code == 0
    assert files(stage.run.path) == before


def test_looking_does_not_keep_a_run_from_beginning(run: RunDirectory) -> None:
    code = "import sys\nfrom pathlib import Path\nfrom records.run_folder import RunDirectory\n"
    code += "run = RunDirectory(Path(sys.argv[1]))\nprint(flush=True)\nwhile True: run.is_running"
    (run.path / ".lock").touch()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(run.path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as looking:
        assert looking.stdout is not None
        looking.stdout.readline()
        for _ in range(20):
            lock = run.lock()
            assert run.is_running
            lock.release()
        looking.kill()
    assert not run.is_running


def test_a_look_that_takes_long_does_not_keep_a_run_from_beginning_either(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that a busy machine has stopped in the middle; it ends after the third try to begin."""
    (run.path / ".lock").touch()
    looking = os.open(run.path / ".lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    tries: list[float] = []

    def sleep(seconds: float) -> None:
        tries.append(seconds)
        if len(tries) == 3:
            os.close(looking)

    monkeypatch.setattr("records.run_folder.time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    lock = run.lock()
    assert len(tries) == 3
    with pytest.raises(RunError, match="in progress in another process"):
        run.lock()
    lock.release()


def test_what_broke_is_told_with_the_latest_reasons(run: RunDirectory) -> None:
    run.plan.add(asked(number) for number in range(10))
    run.journal.write("started", cases=10, left=10)
    finish(run, asked(0))
    finish(run, asked(1), "timeout")
    for number in range(2, 9):
        finish(run, asked(number), "infrastructure", f"the engine is [gone] {number}")
    finish(run, asked(2))
    status = StatusReader(run).look()
    assert (status.planned, status.done, status.errors, status.waiting) == (10, 3, 6, 1)
    assert status.outcomes == {"nanobot": {"resolved": 2, "timeout": 1, "infrastructure": 6}}
    assert status.left == 1
    assert len(status.broken) == 5
    shown = CliRunner().invoke(app, ["status", str(run.path)], env={"COLUMNS": "120"}).stdout
    assert "the engine is [gone] 8" in shown
    assert "3 of 10 planned cases, 2 of them resolved" in shown
    assert "killed" in shown
    run.journal.write("interrupted", exit_status=2)
    assert StatusReader(run).look().state == "interrupted"


def test_what_is_spent_is_added_up_as_it_comes(run: RunDirectory) -> None:
    finish(run, asked(1))
    log = run.case(asked(1)).requests
    line = json.dumps({"method": "POST", "cost": {"priced": "0.5", "held": "0.25"}}) + "\n"
    log.write_text(line + json.dumps({"cost": {"held": None}}) + "\n" + '"held": "\n')
    spent = Spent(run)
    assert spent.total() == Decimal("0.25")
    with log.open("a") as file:
        file.write(line[:30])
        file.flush()
        assert spent.total() == Decimal("0.25"), "a line that is not whole yet is left out"
        file.write(line[30:] + line)
    assert spent.total() == Decimal("0.75")
    run.case(asked(1)).forget()
    assert spent.total() == Decimal("0.75"), "what an attempt cost that was thrown away is spent"
    assert StatusReader(run).look().spent == Decimal("0.75")


def test_what_has_not_changed_is_not_read_again_and_what_has_is(run: RunDirectory) -> None:
    finish(run, asked(1), "timeout")
    looker = StatusReader(run)
    assert looker.look().outcomes == {"nanobot": {"timeout": 1}}
    finish(run, asked(1), "resolved")
    assert looker.look().outcomes == {"nanobot": {"resolved": 1}}


def test_a_worker_that_died_at_a_case_is_not_at_work_on_it(run: RunDirectory) -> None:
    run.plan.add([asked(1), asked(2)])
    lock = run.lock()
    for number in (1, 2):
        run.note(run.case(asked(number)), "begun", attempt=1)
    Progress(run.path, "gw0").say("nanobot-acme__tool-1", "nanobot works")
    Progress(run.path, "gw2").say("", "")
    script = (
        "import os, signal, sys; from pathlib import Path; from records.progress import Progress\n"
        "Progress(Path(sys.argv[1]), 'gw1').say('nanobot-acme__tool-2', 'nanobot works')\n"
        "print('said', flush=True); sys.stdin.read()"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "said\n"
        assert [one.worker for one in steps(run.path)] == ["gw0", "gw1"]
        assert [one.worker for one in StatusReader(run).look().running] == ["gw0", "gw1"]
        worker.kill()
    assert [one.worker for one in steps(run.path)] == ["gw0"]
    assert [one.worker for one in StatusReader(run).look().running] == ["gw0"]
    lock.release()
    assert StatusReader(run).look().running == []


@pytest.mark.parametrize(
    ("ages", "cases", "over"),
    [
        ([60.0 * minute for minute in range(1, 60)], 29, WINDOW),
        ([7200.0, 7100.0], 2, 7300.0),
        ([7200.0] * 3 + [3600.0] * 8, 8, 7200.0),
    ],
    ids=["the last half hour", "since the command began", "the last eight"],
)
def test_the_rate_is_of_the_recent_past(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, ages: list[float], cases: int, over: float
) -> None:
    now = time.time()
    events = [("started", 7300.0), *(("finished", age) for age in sorted(ages, reverse=True))]
    for number, (event, age) in enumerate(events):
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - age))
        monkeypatch.setattr("records.journal.now", lambda moment=moment: moment)
        more = {"left": 100} if event == "started" else {"claw": "nanobot", "instance_id": str(number)}
        Journal(run.journal.path).write(event, **more)
    # however long that took, it is looked at as of that moment
    monkeypatch.setattr("records.status.time", SimpleNamespace(time=lambda: now))
    lock = run.lock()
    status = StatusReader(run).look()
    lock.release()
    assert isinstance(status.rate, Rate)
    assert status.rate.cases == cases
    assert abs(status.rate.seconds - over) <= 1, "the journal's times are whole seconds"
    assert status.left == 100 - len(ages)
    assert status.seconds_left == pytest.approx(status.left * status.rate.seconds / cases)


def test_times_are_told_as_people_do() -> None:
    assert [duration(value) for value in (0.4, 90, 600, 3 * 3600, 75 * 3600)] == [
        "0 s",
        "90 s",
        "10 min",
        "3 h 0 min",
        "3 d 3 h",
    ]
    assert seconds("1970-01-02T00:00:00Z") == 86400


def test_runs_that_can_not_be_read_are_listed_as_such(run: RunDirectory) -> None:
    finish(run, asked(1))
    (run.path.parent / "broken").mkdir()
    (run.path.parent / "broken" / "manifest.json").write_text("[]\n")
    done = CliRunner().invoke(app, ["runs", "--artifacts", str(run.path.parent)])
    assert done.exit_code == 0
    assert "unreadable" in done.stdout
    assert "acme/big" in done.stdout
    assert "no run is in" in CliRunner().invoke(app, ["runs", "--artifacts", str(run.path)]).stdout


@pytest.mark.parametrize("damage", [{"outcome": 7}, {"outcome": "won"}, {"agent_label": None}])
def test_a_record_that_is_invalid_is_reported_and_not_counted(run: RunDirectory, damage: dict[str, Any]) -> None:
    run.plan.add([asked(1), asked(2)])
    finish(run, asked(1))
    finish(run, asked(2))
    path = run.case(asked(1)).path / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}) + "\n")
    status = StatusReader(run).look()
    assert status.done == 1
    assert "is not a valid record" in status.unreadable[0]
    done = CliRunner().invoke(app, ["status", str(run.path)])
    assert done.exit_code == 0, done.exception


def test_of_a_case_that_the_disk_does_not_give_this_is_told_and_the_others_are_as_ever(run: RunDirectory) -> None:
    run.plan.add([asked(number) for number in range(8)])
    for number in range(8):
        finish(run, asked(number))
    for number in range(1, 8):
        path = run.case(asked(number)).path / "metadata.json"
        path.unlink()
        path.mkdir()  # what root, too, can't read
    status = StatusReader(run).look()
    assert (status.done, status.waiting, len(status.unreadable)) == (1, 7, 7)
    done = CliRunner().invoke(app, ["status", str(run.path)])
    assert done.exit_code == 0
    assert "Is a directory" in done.stdout
    assert "and 2 more" in done.stdout
    assert len(told("status", str(run.path))["unreadable"]) == 7


def test_a_manifest_whose_parts_are_none_is_refused_in_words(run: RunDirectory) -> None:
    run.manifest_path.write_text(json.dumps({**json.loads(run.manifest_path.read_text()), "limits": 7}) + "\n")
    done = CliRunner().invoke(app, ["status", str(run.path)])
    assert done.exit_code == 2
    assert "is not a valid record" in done.stdout


def test_who_names_no_run_is_told_so_and_of_no_option(run: RunDirectory) -> None:
    for name in ("../elsewhere", "/etc", ""):
        done = CliRunner().invoke(app, ["status", name, "--artifacts", str(run.path.parent)])
        assert done.exit_code == 2
        assert "there is no run" in done.stdout
        assert "--run-id" not in done.stdout
