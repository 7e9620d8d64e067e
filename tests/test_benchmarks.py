"""The benchmark of claws and the meter under it: what the kernel counted, for real containers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import docker
import pytest
from docker.models.containers import Container
from test_crash import wait_until

from adapters.registry import installed
from clawbench.benchmarks import claws
from clawbench.benchmarks.__main__ import main
from clawbench.benchmarks.images import MARKS, base_image
from clawbench.benchmarks.meter import Meter

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    found = docker.from_env()
    yield found
    found.close()


@pytest.fixture
def container(client: docker.DockerClient) -> Iterator[Container]:
    found = client.containers.run(
        base_image(client, print), ["sleep", "600"], detach=True, init=True, network_mode="none", labels=MARKS
    )
    yield found
    found.remove(force=True)


def test_the_meter_counts_what_was_used(container: Container) -> None:
    meter = Meter(container)
    hungry = "b = bytearray(200 << 20); t = __import__('time'); \nwhile t.process_time() < 1: pass"
    began = time.monotonic()
    assert container.exec_run(["python3", "-c", hungry]).exit_code == 0
    took = time.monotonic() - began
    # all ten are there before any of them ends
    ten = 'for n in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & all="$all $!"; done; sleep 3; kill $all; wait'
    assert container.exec_run(["sh", "-c", ten]).exit_code == 0
    meter.stop()
    assert 1 <= meter.cpu_seconds < took + 5
    assert 200 << 20 <= meter.peak_memory < 400 << 20
    assert 12 <= meter.peak_pids < 30


def test_a_container_that_used_nothing(container: Container) -> None:
    meter = Meter(container)
    meter.stop()
    assert meter.cpu_seconds < 0.5
    assert meter.peak_memory < 50 << 20
    assert 1 <= meter.peak_pids < 20, "the engine's own threads, by which it starts a command, are counted"


def test_a_container_that_has_ended_has_no_counts(container: Container) -> None:
    meter = Meter(container)
    container.kill()
    container.wait()

    def has_none() -> bool:
        try:
            meter.stop()
        except OSError as error:
            return "No such" in str(error)
        return False

    wait_until(has_none)  # its cgroups go a moment after it, where the engine is busy


@pytest.mark.skipif(not installed("generic"), reason="generic is not installed: clawbench install generic")
def test_a_claw_has_a_row(client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claws, "installed", lambda name: name == "generic")
    monkeypatch.setattr(claws, "ROUNDS", 1)
    said: list[str] = []
    table = claws.run(client, said.append)
    claw, _version, *numbers, share = [next(iter(column.cells)) for column in table.columns]
    assert claw == "generic"
    assert all(float(str(number)) > 0 for number in numbers)
    assert 0 < int(str(share).rstrip("%")) <= 100
    assert "nanobot is not installed, and left out" in said


def test_a_benchmark_that_there_is_not_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claw"]) == 2
    assert "claws" in capsys.readouterr().out
