"""Whole runs without an engine, with what can go wrong around them: nothing is lost, and nothing done twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from support.waiting import wait_for

from clawbench import ROOT
from records.progress import Progress
from tests.long.rehearsal import rehearsal_checks, thrown_faults
from tests.long.rehearsal.command import started
from tests.long.rehearsal.rehearsed_claws import NAMES
from tests.long.rehearsal.stage import Stage, rehearsed

AFTER_THE_VERDICT = """
import os, signal
from pathlib import Path

def pytest_runtest_teardown(item):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return  # the controller is told of it as well
    try:
        Path(os.environ["MARK"]).open("x").close()
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run(stage: Stage, *arguments: str, **extra: str) -> tuple[int, str]:
    done = subprocess.run(
        [*stage.command(), *arguments],
        env={**stage.environment, **extra},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("hook", ["pytest_runtest_teardown(item)", "pytest_runtest_logfinish(nodeid)"])
def test_a_worker_that_dies_after_the_verdict_takes_it_not_along(tmp_path: Path, hook: str) -> None:
    stage = rehearsed(tmp_path, 10, 2, seed=0, breaks=0.0)
    (tmp_path / "deadly.py").write_text(AFTER_THE_VERDICT.replace("pytest_runtest_teardown(item)", hook))
    code, said = run(stage, "-p", "deadly", PYTHONPATH=str(tmp_path), MARK=str(tmp_path / "mark"))
    assert "node down" in said
    assert code == 1, said
    rehearsal_checks.whole(stage)
    begun = [row["case"] for row in stage.ledger.rows() if row["event"] == "claw begins"]
    assert sorted(begun) == sorted(stage.cases)
    journal = (stage.run.path / "state.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in journal]
    assert events.count("finished") == len(stage.cases)


AT_THE_THIRD = """
import os, signal

begun = []

def pytest_runtest_logstart(nodeid):
    begun.append(nodeid)
    if "PYTEST_XDIST_WORKER" in os.environ and len(begun) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_command_that_may_not_replace_workers_never_ends_as_if_all_were_well(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 30, 1, seed=0, breaks=0.0)
    resolved = [name for name, expected in stage.cases.items() if expected.outcome == "resolved"]
    (tmp_path / "deadly.py").write_text(AT_THE_THIRD)
    deadly = ["-k", " or ".join(resolved), "-p", "deadly", "--max-worker-restart=0"]
    code, said = run(stage, *deadly, PYTHONPATH=str(tmp_path))
    assert "failed" not in said.splitlines()[-1]
    assert code == 2
    open_cases = len(resolved) - stage.ended()
    assert f"{open_cases} of {len(resolved)} cases are open because --max-worker-restart ended the command" in said


OTHER_TESTS = """
import pytest

@pytest.fixture(scope="module")
def shared():
    yield 1

def test_NAME(shared): pass

class TestOthers:
    def test_NAME_in_a_class(self): pass

def test_NAME_again(shared): pass
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_other_modules_in_the_same_command_are_run_as_ever(tmp_path: Path, workers: str) -> None:
    stage = rehearsed(tmp_path, 5, 1, seed=0, breaks=0.0)
    others = [tmp_path / "test_first.py", tmp_path / "test_second.py"]
    for path in others:
        path.write_text(OTHER_TESTS.replace("NAME", path.stem))
    modules = [str(ROOT / "tests_bench/test_resolved.py"), *map(str, others)]
    for _ in "new", "ended":
        said = run(stage, "-n", workers, "-k", f"test_ or ({' or '.join(NAMES)})", *modules)[1]
        assert "error" not in said.splitlines()[-1], said
        report = json.loads((stage.run.path / "report.json").read_text())
        outcomes = [test["outcome"] for test in report["tests"] if "test_resolved" not in test["nodeid"]]
        assert outcomes == ["passed"] * 6


DISK_FULL_AFTER_THE_VERDICT = """
import errno, os
from pathlib import Path
from records.journal import Journal

real = Journal.write

def write(self, event, **facts):
    if event == "finished":
        try:
            Path(os.environ["MARK"]).open("x").close()
            raise OSError(errno.ENOSPC, "No space left on device")
        except FileExistsError:
            pass
    real(self, event, **facts)

Journal.write = write
"""


def test_a_verdict_stands_though_the_disk_is_full_right_after_it(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 10, 1, seed=0, breaks=0.0)
    (tmp_path / "full.py").write_text(DISK_FULL_AFTER_THE_VERDICT)
    code, said = run(stage, "-p", "full", PYTHONPATH=str(tmp_path), MARK=str(tmp_path / "mark"))
    assert code == 1
    assert "1 error in" in said
    assert "the disk is full: free some space" in said
    before = rehearsal_checks.ended(stage.run)
    code, said = run(stage)
    assert "error in" not in said
    rehearsal_checks.untouched(before)
    rehearsal_checks.whole(stage)
    judged = [row["case"] for row in stage.ledger.rows() if row["event"] == "judge begins"]
    assert len(judged) == len(set(judged))


TORN_REPORT = """
import os
from pathlib import Path
import pytest

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        os.truncate(session.config.option.json_report_file, 30)
"""


def test_reports_are_written_where_the_command_says(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 5, 1, seed=0, breaks=0.0)
    run(stage, f"--json-report-file={tmp_path / 'mine.json'}", f"--junitxml={tmp_path / 'mine.xml'}")
    assert len(json.loads((tmp_path / "mine.json").read_text())["tests"]) == 5
    assert (tmp_path / "mine.xml").read_text().count("<testcase ") == 5
    assert not list(stage.run.path.glob("report.json")) + list(stage.run.path.glob("junit.xml"))


def test_a_report_that_was_written_in_part_is_told_of(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 5, 1, seed=0, breaks=0.0)
    (tmp_path / "torn.py").write_text(TORN_REPORT)
    code, said = run(stage, "-p", "torn", PYTHONPATH=str(tmp_path))
    assert code == 1
    assert "the reports could not be written: report.json is incomplete" in said
    assert "Traceback" not in said


def test_no_case_begins_without_the_gateway(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 100, 1, seed=0, breaks=0.0)
    with started(stage.command(), stage.environment, stage.output, stage.ended) as command:
        wait_for(lambda: stage.ended() or command.process.poll() is not None, "a case ends")
        (gateway,) = command.of_kind("gateway")
        command.kill(gateway)
        assert command.process.wait() == 1
    said = stage.output.read_text()
    assert "not begun: the run's gateway is gone. Run the same command again" in said
    events = [entry.event for entry in stage.run.journal.read().entries]
    # each of the two workers may have been at a case, the one of them waiting until the other's claw has ended
    assert events.count("errored") <= 2
    assert events.count("begun") <= events.count("finished") + 2
    _, said = run(stage)
    assert "error in" not in said
    rehearsal_checks.whole(stage)


def test_what_the_first_failure_left_open_is_run_by_the_next_command_and_so_are_more_samples(
    tmp_path: Path,
) -> None:
    one = rehearsed(tmp_path, 10, 1, seed=0, breaks=0.0)
    code, said = run(one, "-x")
    assert code == pytest.ExitCode.INTERRUPTED, said
    journal = one.run.journal.read()
    begun = sum(entry.event == "begun" for entry in journal.entries)
    assert begun == one.ended() < 10, "what was under way has ended, and no more was begun"
    assert journal.entries[-1].event == "interrupted"
    assert f"{10 - begun} of 10 cases are open because -x or --maxfail ended the command" in said
    before = rehearsal_checks.ended(one.run)
    code, said = run(one, "-x")
    assert code == pytest.ExitCode.INTERRUPTED, "a failure that is known is one as well"
    assert "ended the command: the same command without it" in said
    two = one.with_samples(2)
    code, said = run(two)
    assert code == pytest.ExitCode.TESTS_FAILED, said
    rehearsal_checks.untouched(before)
    rehearsal_checks.whole(two)
    before = rehearsal_checks.ended(two.run)
    thrown_faults.lose_power(two, Random(0))  # noqa: S311 - what is drawn is to be drawn again
    rehearsal_checks.untouched(before)
    rehearsal_checks.whole(two)


REFUSING = """
from clawbench.pytest_plugin import attempts
from tests.long.rehearsal.rehearsed_engine import Engine

attempts.pause_before = lambda retry: 0.0
Engine.breaks_off = lambda self, kind, case_id: kind == "judge" and self.ledger.attempt(kind, case_id) <= 2
"""


def test_no_case_is_run_again_where_that_helps_nothing_nor_more_of_it_than_must_be(tmp_path: Path) -> None:
    stage = rehearsed(tmp_path, 5, 1, seed=0, breaks=0.0)
    (tmp_path / "refusing.py").write_text(REFUSING)
    faulty = ("-p", "refusing", "--infra-retries=2")
    refused = ("--model=scripted:unauthorized", "--run-id=refused")
    code, said = run(stage, *faulty, *refused, PYTHONPATH=str(tmp_path))
    assert code == 1
    assert said.count("infrastructure: the provider refused the key or the account (") >= 5
    assert "run again" not in said
    before = list(stage.ledger.rows())
    claws = [row["case"] for row in before if row["event"] == "claw begins"]
    assert sorted(claws) == sorted(stage.cases)
    # asked to forget what there is, it forgets nothing that it did itself
    code, said = run(stage, *faulty, "--no-resume", PYTHONPATH=str(tmp_path))
    assert "run again after infrastructure errors" in said
    rehearsal_checks.whole(stage)
    done = [(row["event"], row.get("case")) for row in stage.ledger.rows()][len(before) :]
    judged = {case for event, case in done if event == "judge begins"}
    assert {done.count(("claw begins", case)) for case in stage.cases} == {1}
    assert {done.count(("judge begins", case)) for case in judged} == {3}


DYING = """
import os, signal
from pathlib import Path
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    for number, case in enumerate(os.environ["DYING"].split()):
        deaths = list(Path(os.environ["DEATHS"]).glob(f"{number}-*"))
        if f"[{case}]" in item.nodeid and len(deaths) <= number:
            (Path(os.environ["DEATHS"]) / f"{number}-{len(deaths)}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return (yield)
"""


def test_asked_to_forget_a_command_does_not_tell_an_earlier_one_s_verdict_where_a_worker_dies_first(
    tmp_path: Path,
) -> None:
    stage = rehearsed(tmp_path, 5, 1, seed=0, breaks=0.0)
    run(stage)
    once, twice = list(stage.cases)[:2]
    (tmp_path / "dying.py").write_text(DYING)
    (tmp_path / "deaths").mkdir()
    before = len(list(stage.ledger.rows()))
    words = ("-p", "dying", "--no-resume", "--infra-retries=1")
    extra = {"DYING": f"{once} {twice}", "DEATHS": str(tmp_path / "deaths"), "PYTHONPATH": str(tmp_path)}
    code, said = run(stage, *words, **extra)
    assert len(list((tmp_path / "deaths").iterdir())) == 3, said
    assert code == 1
    done = [row["case"] for row in list(stage.ledger.rows())[before:] if row["event"] == "claw begins"]
    assert sorted(done) == sorted(set(stage.cases) - {twice})
    outcomes = {str(case.id): case.metadata().outcome for case in stage.run.cases()}
    assert outcomes[twice] == "infrastructure"
    run(stage)
    done = [row["case"] for row in list(stage.ledger.rows())[before:] if row["event"] == "claw begins"]
    assert sorted(done) == sorted(stage.cases), "what an earlier command exported is not judged again, either"


def test_a_run_loses_nothing_whatever_is_thrown_at_it() -> None:
    """The rehearsal of `make rehearse`, made small; the seed is in what it says."""
    asked = ["--cases", "40", "-n", "2", "--acts", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.long.rehearsal", *asked],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "complete after" in done.stdout


def test_no_case_ends_by_what_only_shows_it(tmp_path: Path) -> None:
    (tmp_path / ".progress").touch()
    Progress(tmp_path, "gw0").say("amber-django__django-11790", "the claw works")


WHAT_WAS_STARTED = """
import os
from pathlib import Path

def note(word):
    with Path(os.environ["STARTED"]).open("a") as log:
        log.write(f"{word}\\n")

def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        from clawbench.pytest_plugin import SESSION
        note("gateway" if config.stash[SESSION]._gateway is not None else "none")
"""


def test_a_command_starts_what_its_open_cases_need(tmp_path: Path) -> None:
    """And tells of the others what the command told that ran them."""
    stage = rehearsed(tmp_path, 40, 2, seed=0, breaks=0.0)
    (tmp_path / "started.py").write_text(WHAT_WAS_STARTED)
    log = tmp_path / "started.txt"
    cases = stage.run.cases
    for torn, gateway in ((0, "gateway"), (0, "none"), (1, "gateway"), (3, "gateway")):
        for case in cases()[:torn]:
            (case.path / "git.patch").unlink()
        before = rehearsal_checks.ended(stage.run)
        code, said = run(stage, "-p", "started", PYTHONPATH=str(tmp_path), STARTED=str(log))
        assert code == 1, said
        assert log.read_text().split()[-1] == gateway
        log.unlink()
        rehearsal_checks.untouched(before)
        assert rehearsal_checks.is_complete(stage)
        if not torn:
            rehearsal_checks.whole(stage)
        begun = [row["case"] for row in stage.ledger.rows() if row["event"] == "claw begins"]
        assert len(begun) == 40 + {0: 0, 1: 1, 3: 4}[torn], "no case that had ended is run again"
