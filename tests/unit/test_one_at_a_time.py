"""How cases are handed to workers, shown with a small project of ordinary tests and pytest-xdist itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench_run import ROOT, environment
from support.waiting import wait_for

PATH = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"

CONFTEST = """
import pytest
from pathlib import Path
from xdist.workermanage import parse_tx_spec_config
from clawbench.pytest_plugin import one_at_a_time
from clawbench.pytest_plugin.one_at_a_time import OneAtATime
from clawbench.pytest_plugin.private_names import take_one_at_a_time

HERE = Path(__file__).parent
died = []
one_at_a_time.FEWEST_DEATHS = 1

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config):
    def put_back(test_id):
        died.append(test_id)
        return died.count(test_id) <= 2

    def replay(test_id):
        if "replayed" in test_id:
            with (HERE / "log").open("a") as log:
                log.write("replayed controller\\n")
        return "replayed" in test_id

    workers = len(parse_tx_spec_config(config))
    return OneAtATime(workers, replay=replay, put_back=put_back, attempts=3)

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

from support.waiting import wait_for
"""


def words(folder: Path, tests: str, *arguments: str) -> list[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_small.py").write_text(HELPERS + tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    without = [word for name in ("hypothesispytest", "anyio") for word in ("-p", f"no:{name}")]
    return [sys.executable, "-m", "pytest", *without, *arguments]


def run(folder: Path, tests: str, *arguments: str) -> tuple[int, str, list[str]]:
    """Its exit code, what it said, and what its tests noted."""
    return outcome(folder, words(folder, tests, *arguments))


def outcome(folder: Path, command: list[str]) -> tuple[int, str, list[str]]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(PYTHONPATH=PATH),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    log = folder / "log"
    return done.returncode, done.stdout, log.read_text().splitlines() if log.exists() else []


def test_nothing_waits_behind_a_long_one(tmp_path: Path) -> None:
    """The first test ends when all others have: none of them may have been handed to its worker."""
    tests = """
@pytest.mark.parametrize("number", range(8))
def test_it(number):
    if number == 0:
        wait_for(lambda: len([line for line in noted() if line[0].isdigit()]) == 7)
    note(number)
"""
    code, output, noted = run(tmp_path, tests, "-n2")
    assert code == 0, output
    assert [line.split()[0] for line in noted] == [*"1234567", "0"], "in their order"


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
from support.waiting import wait_for
from common.processes import has_ended
from clawbench.pytest_plugin.private_names import pid_of

from xdist.workermanage import WorkerController

send = WorkerController.send_runtest_some

def noting(self, indices):
    try:
        return send(self, indices)
    except OSError:
        (HERE / "refused").touch()
        raise

WorkerController.send_runtest_some = noting

def pytest_collection_finish(session):
    if hasattr(session.config, "workerinput"):
        worker = next(one for one in session.config.pluginmanager.get_plugins() if hasattr(one, "run_one_test"))
        send = worker.sendevent

        def dying(name, **what):
            send(name, **what)
            if name == "runtest_protocol_complete" and what["item_index"] == 0:
                die()

        worker.sendevent = dying

def die():
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    # the controller can't write to the dead one any more, and does not read of its end before it has tried to
    for handle in range(100):
        with suppress(OSError):
            if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                os.close(handle)
    wait_for((HERE / "refused").exists)
    os._exit(0)

def pytest_runtest_logreport(report):
    if hasattr(report, "node") and report.when == "teardown" and report.nodeid.endswith("[0]"):
        wait_for(lambda: has_ended(pid_of(report.node)))
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


def test_a_replayed_test_goes_to_no_worker(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(5))
def test_replayed(number):
    note("run")

def test_other():
    note("other")
"""
    code, output, noted = run(tmp_path, tests, "-n2")
    assert code == 0, output
    assert "1 passed" in output
    assert [line.split()[0] for line in noted] == [*["replayed"] * 5, "other"]


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
        wait_for((HERE / "failed").exists)
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
        env=environment(PYTHONPATH=PATH),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    log = tmp_path / "log"
    wait_for(lambda: log.exists() and len(log.read_text().splitlines()) == 2, "both workers are at work")
    os.killpg(process.pid, signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert len((tmp_path / "log").read_text().splitlines()) == 2, "nothing was run again, and nothing more"
