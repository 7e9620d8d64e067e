"""Whatever is killed in the middle of a run, the next run with its id ends with the right verdicts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from support.bench_run import ROOT, BenchRun, children, containers_of, fresh_id, run_bench, started
from support.waiting import wait_for

from adapters.registry import installed
from adapters.runtimes import default_home
from common.processes import has_ended
from demo.task_images import ensure_image, image_name

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot"),
]

IDS = ["demo__confmerge-87", "demo__cronspan-118", "demo__ledgerlite-204"]
SELECTION = ("-k", "nanobot and (confmerge or cronspan or ledgerlite)", "--model=scripted:slow")


def workers_at_work(run_id: str) -> list[int]:
    """The processes that a run's workspaces belong to."""
    client = docker.from_env()
    try:
        found = client.containers.list(filters={"label": f"clawbench.run={run_id}"}, ignore_removed=True)
        return sorted({int(container.labels["clawbench.owner"].split(":")[1]) for container in found})
    finally:
        client.close()


def claws_at_work(folder: Path) -> int:
    """How many cases have asked the model at least once and are not over."""
    at_work = 0
    for log in folder.glob("nanobot/*/requests.jsonl"):
        at_work += log.stat().st_size > 0 and not (log.parent / "export.json").exists()
    return at_work


def assert_whole(run: BenchRun, resolved: list[str]) -> None:
    assert run.exit_code == 0, run.output
    assert run.outcomes() == dict.fromkeys(resolved, "resolved")
    assert [row["instance_id"] for row in run.predictions()] == resolved
    assert all(row["model_patch"] for row in run.predictions())
    assert containers_of(run.folder.name) == []


def test_a_killed_worker_is_an_error_and_the_next_run_does_the_rest(tmp_path: Path) -> None:
    run_id = fresh_id("worker")
    with started(tmp_path, run_id, "-n", "3", "--eval-slots=1", *SELECTION) as process:
        wait_for(lambda: claws_at_work(tmp_path / run_id) >= 1)
        os.kill(workers_at_work(run_id)[0], signal.SIGKILL)
        output = process.communicate()[0]
    first = BenchRun(tmp_path / run_id, process.returncode, output)
    assert first.counts == {"passed": 2, "error": 1}, output
    assert sorted(first.outcomes().values()) == ["infrastructure", "resolved", "resolved"]

    assert_whole(run_bench(tmp_path, run_id, "-n", "1", *SELECTION), IDS)


def test_the_case_of_a_killed_worker_is_run_again_in_the_same_command(tmp_path: Path) -> None:
    run_id = fresh_id("again")
    with started(tmp_path, run_id, "-n", "2", "--infra-retries=2", *SELECTION) as process:
        wait_for(lambda: claws_at_work(tmp_path / run_id) >= 1)
        os.kill(workers_at_work(run_id)[0], signal.SIGKILL)
        output = process.communicate()[0]
    run = BenchRun(tmp_path / run_id, process.returncode, output)
    assert_whole(run, IDS)
    assert run.counts == {"passed": 3}, output
    assert sorted(row["infra_retries"] for row in run.cases().values()) == [0, 0, 1]
    assert len(run.junit()) == (run.folder / "junit.xml").read_text().count("<testcase") == 3
    assert "1 case was run again after infrastructure errors" in output
    assert len(list(run.folder.glob("earlier_attempts/nanobot/*/1.jsonl"))) <= 1, "what it asked stays counted"


def test_a_killed_controller_takes_all_with_it_and_the_next_run_does_the_rest(tmp_path: Path) -> None:
    """Twice under one run id: alone, and with its workers."""
    run_id = fresh_id("controller")
    for workers_too in (False, True):
        with started(tmp_path, run_id, "-n", "2", *SELECTION) as process:
            wait_for(lambda process=process: bool({*workers_at_work(run_id)} & {*children(process.pid)}))
            wait_for(lambda: claws_at_work(tmp_path / run_id) >= 1)
            family = children(process.pid)
            process.kill()
            for pid in family if workers_too else []:
                with suppress(ProcessLookupError):  # it has found the controller gone by itself
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            wait_for(lambda family=family: all(map(has_ended, family)))

    assert_whole(run_bench(tmp_path, run_id, "-n", "2", *SELECTION), IDS)


NEVER_JUDGED = """
import time
import clawbench.pytest_plugin
from clawbench.run import case

judge = case.judge

def endless(*arguments, **named):
    judge(*arguments, **named)
    time.sleep(3600)

case.judge = endless
"""


def test_an_export_outlives_a_kill_and_no_claw_runs_twice(tmp_path: Path) -> None:
    """Killed in the evaluation, only the evaluation is done again."""
    run_id = fresh_id("export")
    folder = tmp_path / run_id / "nanobot" / IDS[2]
    arguments = ("-k", "nanobot and ledgerlite", "--model=scripted:oracle")
    (tmp_path / "endless.py").write_text(NEVER_JUDGED)
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    with started(tmp_path, run_id, "-p", "endless", *arguments, PYTHONPATH=path) as process:
        wait_for((folder / "export.json").exists)
        process.kill()
    log = (folder / "requests.jsonl").read_bytes()
    patch = (folder / "git.patch").read_bytes()
    assert not (folder / "metadata.json").exists(), "the kill came too late to show anything"

    assert_whole(run_bench(tmp_path, run_id, *arguments), [IDS[2]])
    assert (folder / "requests.jsonl").read_bytes() == log
    assert (folder / "git.patch").read_bytes() == patch


def test_a_run_id_in_use_is_refused(tmp_path: Path) -> None:
    run_id = fresh_id("twice")
    endless = (*SELECTION[:2], "--model=scripted:hang")
    with started(tmp_path, run_id, *endless):
        wait_for((tmp_path / run_id / "manifest.json").exists)
        second = run_bench(tmp_path, run_id, *endless)
    assert second.exit_code == 4
    assert f"run {run_id} is in progress in another process" in second.output


class Engine:
    """A Docker engine of our own, which may be restarted without taking anyone else's containers along."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        folder = self.folder
        log = (folder / "log").open("ab")
        (folder / "pid").unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [
                # in namespaces of its own: two engines would fight for one bridge, and its mounts end with it
                *("unshare", "--net", "--mount", "--", "dockerd", "--host", self.url),
                *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
            ],
            stdout=log,
            stderr=log,
        )
        log.close()
        wait_for(self._answers)

    def _answers(self) -> bool:
        try:
            client = docker.DockerClient(self.url)
        except docker.errors.DockerException:
            return False
        client.close()
        return True

    def stop(self) -> None:
        """As a service manager does: the engine ends its containers and goes."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()  # `unshare` became dockerd
            self._process.wait(240)


@pytest.fixture
def engine() -> Iterator[Engine]:
    if os.geteuid() != 0 or shutil.which("dockerd") is None or sys.platform != "linux":
        pytest.skip("an engine of our own needs root and dockerd")
    # sockets' paths are short, and containers' layers want a real file system
    folder = Path(f"/var/tmp/clawbench-{os.getpid()}")
    folder.mkdir()
    ours = Engine(folder)
    try:
        ours.start()
        yield ours
    finally:
        ours.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_restarted_engine_costs_only_what_was_under_way(tmp_path: Path, engine: Engine) -> None:
    shared, own = docker.from_env(timeout=600), docker.DockerClient(engine.url, timeout=600)
    for instance_id in IDS[1:]:
        ensure_image(shared, instance_id, cache=default_home(), say=print)
        own.images.load(shared.images.get(image_name(instance_id)).save(named=True))
    selection = ("-n", "2", "-k", "nanobot and (cronspan or ledgerlite)", "--model=scripted:slow")
    run_id = fresh_id("engine")
    with started(tmp_path, run_id, *selection, DOCKER_HOST=engine.url) as process:
        wait_for(lambda: claws_at_work(tmp_path / run_id) >= 1)
        engine.stop()
        engine.start()
        output = process.communicate()[0]
    first = BenchRun(tmp_path / run_id, process.returncode, output)
    assert "failed" not in first.counts, output
    assert set(first.outcomes().values()) <= {"resolved", "infrastructure"}

    second = run_bench(tmp_path, run_id, *selection[2:], DOCKER_HOST=engine.url)
    assert second.outcomes() == dict.fromkeys(IDS[1:], "resolved"), second.output
    assert len(second.predictions()) == 2
    left = docker.DockerClient(engine.url).containers.list(all=True)
    assert [container.name for container in left] == []
    shared.close()
    own.close()
