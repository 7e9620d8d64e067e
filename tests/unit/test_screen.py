"""What the user sees while a run goes on, on a terminal and in a log, and what Ctrl-C does."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from support.bench_run import ROOT
from support.made_up import CLAW, made_up_record
from support.waiting import wait_for

from clawbench.controller.progress_printer import ProgressPrinter
from records.case_id import CaseId
from records.models import RunManifest
from records.progress import Progress
from records.run_folder import RunDirectory
from records.status import StatusReader
from tests.long.rehearsal.stage import Stage, rehearsed

BEGAN = 1_800_000_000.0
CASE = CaseId("nanobot", "acme__tool-1")


class Clock:
    """A clock that is set by hand."""

    now = BEGAN

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "made")
    made.open(RunManifest.model_validate({"settings": {"model": "acme/big"}, "claws": {"nanobot": CLAW}}))
    return made


def on_terminal(stage: Stage, *arguments: str, **extra: str) -> tuple[int, str]:
    """The exit status of a rehearsal's command on a terminal of its own, and everything that it printed."""
    leader, follower = pty.openpty()
    environment = {**stage.environment, "TERM": "xterm", "COLUMNS": "100", **extra}
    process = subprocess.Popen(
        [*stage.command(), *arguments],
        cwd=ROOT,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    output = bytearray()
    try:
        while data := os.read(leader, 65536):
            output += data
    except OSError:  # how Linux says that no process has the terminal open any more
        pass
    os.close(leader)
    return process.wait(), output.decode(errors="replace")


def test_the_line_says_how_far_the_run_is_and_what_is_at_work(run: RunDirectory) -> None:
    clock, out = Clock(), io.StringIO()
    printer = ProgressPrinter(run, out, has_price=True, clock=clock)
    printer.total = 1750
    assert printer.line().plain == "0/1,750  0 resolved  0 failed  $0.0000  0 at work"
    for number in range(900):
        printer.ended(f"earlier-{number}", "passed", is_new=False)
    requests = run.case(CASE).path / "requests.jsonl"
    requests.parent.mkdir(parents=True)
    requests.write_text('{"cost": {"held": "1.25"}}\n')
    for number, kind in enumerate(("passed", "failed", "error", "error")):
        clock.now += 90
        printer.ended(f"test-{number}", kind)  # type: ignore[arg-type]
    printer.ended("test-3", "error")
    Progress(run.path, "gw0").say("nanobot-acme__tool-2", "waiting for an evaluation slot")
    Progress(run.path, "gw1").say("nanobot-acme__tool-3", "nanobot works")
    line = printer.line().plain
    assert line.startswith(
        "904/1,750  901 resolved  1 failed  2 errors  $1.2500  40/h  21 h 9 min left  2 at work: "
    )
    assert re.search(r"tool-3 \(nanobot works, .+\), nanobot-acme__tool-2 \(waiting", line)
    assert out.getvalue().splitlines() == [
        "901/1,750 test-0: passed",
        "902/1,750 test-1: failed",
        "903/1,750 test-2: error",
        "904/1,750 test-3: error",
    ]


def test_a_log_gets_a_line_for_each_case_and_a_summary_now_and_then(run: RunDirectory) -> None:
    folder = run.case(CASE)
    run.note(folder, "begun", attempt=1)
    folder.begin()
    run.finish(folder, made_up_record(CASE, outcome="timeout", seconds={"agent": 100.0, "evaluation": 50.0}))
    out = io.StringIO()
    printer = ProgressPrinter(run, out, has_price=False, summary_every=0.01, every=0.01)
    printer.total = 2
    printer.start()
    printer.ended("test_resolved[nanobot-acme__tool-1]", "failed", CASE)
    wait_for(lambda: "0 at work" in out.getvalue().partition("1/2 nanobot")[2], "a summary")
    printer.stop()
    lines = out.getvalue().splitlines()
    assert "1/2 nanobot-acme__tool-1: timeout, 2 min" in lines
    assert re.match(r"1/2  0 resolved  1 failed  \S+/h  .* left  0 at work", lines[-1])
    assert "\x1b" not in out.getvalue()


def test_a_terminal_shows_one_live_line_for_all_workers_and_no_dots(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 5, 2, seed=1, breaks=0.0)
    _, output = on_terminal(stage)
    live = re.findall(r"\x1b\[1m(\d)/5\x1b\[0m", output)
    assert live == sorted(live), output
    assert live[0] == "0"
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    before_result = shown.partition("= FAILURES")[0]
    assert not re.search(r"\[gw\d|^[.FE]+\s*(\[|$)|test_resolved\.py [.FE]", before_result, re.MULTILINE), shown
    assert re.search(r"= .*\d (passed|failed).* in ", shown), "pytest still counts"


def test_a_log_has_no_dots_and_nothing_with_q(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 5, 1, seed=1, breaks=0.0)

    def log(*arguments: str) -> str:
        command = [*stage.command(), "-n0", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=stage.environment, capture_output=True, text=True, check=False
        ).stdout

    first = log()
    assert re.findall(r"^(\d)/5 \S+: \w+, ", first, re.MULTILINE) == list("12345"), first
    quiet = log("--no-resume", "-q")
    assert "/5 " not in quiet
    assert not re.search(r"^[.FE]+\s*(\[|$)|test_resolved\.py", quiet.partition("____")[0], re.MULTILINE), quiet


def test_ctrl_c_is_answered_at_once_and_a_second_one_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "impatient.py").write_text(
        "import os, signal\n\n"
        "def pytest_runtest_call(item):\n    os.kill(os.getpid(), signal.SIGINT)\n\n"
        "def pytest_keyboard_interrupt(excinfo):\n    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    stage = rehearsed(tmp_path, 5, 1, seed=1, breaks=0.0)
    path = f"{tmp_path}{os.pathsep}{stage.environment.get('PYTHONPATH', '')}"
    status, output = on_terminal(stage, "-n0", "-p", "impatient", PYTHONPATH=path)
    assert status == pytest.ExitCode.INTERRUPTED, output
    first = output.index(
        f"ending: removing containers and writing reports; the same command with --run-id={stage.run_id}"
    )
    assert (
        first < output.index("still ending; Ctrl-C once more ends at once") < output.index("KeyboardInterrupt !")
    )
    assert "Traceback" not in output
    assert StatusReader(stage.run).look().state == "interrupted"
