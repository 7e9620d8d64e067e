"""How cases are handed to workers, shown with a small project of ordinary tests and pytest-xdist itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench_run import ROOT, environment

CONFTEST = """
import pytest
from pathlib import Path
from clawbench.scheduling import handing_out
from clawbench.scheduling.handing_out import OneAtATime, take_one_at_a_time

HERE = Path(__file__).parent
died = []
handing_out.FEWEST_DEATHS = 1

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    def put_back(test_id):
        died.append(test_id)
        return died.count(test_id) <= 2
    return OneAtATime(config, log, put_back, attempts=3, is_brief=lambda test_id: "brief" in test_id)

def pytest_runtest_logreport(report):
    if hasattr(report, "node") and report.failed:
        (HERE / "failed").touch()

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if hasattr(session.config, "workerinput"):
        take_one_at_a_time(session)
"""

HELPERS = """
import os, signal, time, pytest
from pathlib import Path
HERE = Path(__file__).parent

def note(name):
    with (HERE / "log").open("a") as log:
        log.write(f"{name} {os.environ['PYTEST_XDIST_WORKER']}\\n")

def noted():
    return (HERE / "log").read_text().splitlines() if (HERE / "log").exists() else []

def until(is_so):
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
"""


def words(folder: Path, tests: str, *arguments: str) -> list[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_small.py").write_text(HELPERS + tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    without = [word for name in ("clawbench.plugin", "hypothesispytest", "anyio") for word in ("-p", f"no:{name}")]
    return [sys.executable, "-m", "pytest", *without, *arguments]


def run(folder: Path, tests: str, *arguments: str) -> tuple[int, str, list[str]]:
    """Its exit code, what it said, and what its tests noted."""
    return outcome(folder, words(folder, tests, *arguments))


def outcome(folder: Path, command: list[str]) -> tuple[int, str, list[str]]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
    log = folder / "log"
    return done.returncode, done.stdout, log.read_text().splitlines() if log.exists() else []


def test_nothing_waits_behind_a_long_one(tmp_path: Path) -> None:
    """The first test ends when all others have: none of them may have been handed to its worker."""
    tests = """
@pytest.fixture(scope="module")
def shared():
    note("up")
    yield
    note("down")

@pytest.mark.parametrize("number", range(8))
def test_it(number, shared):
    if number == 0:
        until(lambda: len([line for line in noted() if line[0].isdigit()]) == 7)
    note(number)
"""
    code, output, noted = run(tmp_path, tests, "-n2")
    assert code == 0, output
    words = [line.split() for line in noted]
    assert [word for word, _ in words if word.isdigit()] == [*"1234567", "0"], "in their order"
    for worker in ("gw0", "gw1"):
        assert [word for word, its in words if its == worker and not word.isdigit()] == ["up", "down"]


def test_a_test_whose_worker_died_is_run_again_as_often_as_may_be(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    note(number)
    dies_at = {1: 2, 2: 1000}.get(number, 0)
    if len([line for line in noted() if line.startswith(f"{number} ")]) <= dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    code, output, noted = run(tmp_path, tests, "-n2")
    assert code == 1, output
    assert "3 passed" in output
    assert sorted(line.split()[0] for line in noted) == [*"01112223"]
    for number in "12":
        workers = [line.split()[1] for line in noted if line.startswith(number)]
        assert len(set(workers)) == 3


DIES_IDLE = """
import fcntl, os, signal, threading, time
from contextlib import suppress
from workspace.owner import has_ended

def pytest_runtest_logfinish(nodeid):
    if "PYTEST_XDIST_WORKER" in os.environ and nodeid.endswith("[0]"):
        threading.Timer(0.5, die).start()

def die():
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    # the controller can't write to the dead one any more, and does not read of its end yet
    for handle in range(100):
        with suppress(OSError):
            if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                os.close(handle)
    time.sleep(2)
    os._exit(0)

def pytest_runtest_logreport(report):
    if hasattr(report, "node") and report.when == "teardown" and report.nodeid.endswith("[0]"):
        while not has_ended(report.node.gateway._rinfo().pid):
            time.sleep(0.02)
"""


def test_what_can_not_be_handed_to_a_worker_that_died_goes_to_another(tmp_path: Path) -> None:
    """It died when it had nothing to do, and nobody had noticed."""
    tests = """
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    note(number)
"""
    command = words(tmp_path, tests, "-n1")
    with (tmp_path / "conftest.py").open("a") as conftest:
        conftest.write(DIES_IDLE)
    code, output, noted = outcome(tmp_path, command)
    assert code == 0, output
    assert "4 passed" in output
    assert [line.split()[0] for line in noted] == [*"0123"]


def test_what_waits_behind_a_brief_one_whose_worker_died_is_another_workers(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(50))
def test_brief(number):
    note(number)
    if number == 3 and len([line for line in noted() if line.startswith("3 ")]) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    code, output, noted = run(tmp_path, tests, "-n2")
    assert code == 0, output
    assert "50 passed" in output
    assert sorted(int(line.split()[0]) for line in noted) == sorted([3, *range(50)])


def test_where_every_worker_dies_the_run_ends(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(40))
def test_it(number):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    code, output, _ = run(tmp_path, tests, "-n1", "--max-worker-restart=100000")
    assert code == pytest.ExitCode.INTERRUPTED, output
    assert "workers died and no case ended in between" in output


def test_the_first_failure_may_end_it(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(20))
def test_it(number):
    note(number)
    assert number != 1
    if number == 0:
        until((HERE / "failed").exists)
    note("ended")
"""
    code, output, noted = run(tmp_path, tests, "-n2", "-x")
    assert code == pytest.ExitCode.INTERRUPTED, output
    assert sorted(line.split()[0] for line in noted) == ["0", "1", "ended"], "what was under way, and no more"


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(20))
def test_it(number):
    note(number)
    time.sleep(600)
"""
    process = subprocess.Popen(
        words(tmp_path, tests, "-n2"),
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 600
    while not (tmp_path / "log").exists() or len((tmp_path / "log").read_text().splitlines()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    output = process.communicate(timeout=600)[0]
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert len((tmp_path / "log").read_text().splitlines()) == 2, "nothing was run again, and nothing more"
