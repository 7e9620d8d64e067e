"""The benchmark of claws and the meter under it: what the kernel counted, for real containers."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest
from docker.models.containers import Container
from support.waiting import wait_for

from adapters.registry import installed
from tools.benchmarks import claw_costs
from tools.benchmarks.__main__ import main
from tools.benchmarks.benchmark_images import MARKS, base_image
from tools.benchmarks.meter import Meter

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
    idle, meter = Meter(container), Meter(container)
    idle.stop()
    hungry = "b = bytearray(200 << 20); t = __import__('time'); \nwhile t.process_time() < 1: pass"
    assert container.exec_run(["python3", "-c", hungry]).exit_code == 0
    ten = "for n in 1 2 3 4 5 6 7 8 9 10; do sleep infinity & done; wait"
    container.exec_run(["sh", "-c", ten], detach=True)
    wait_for(lambda: len(container.top()["Processes"]) >= 12, "all ten are there, with their shell and the init")
    meter.stop()
    assert meter.cpu_seconds >= 1
    assert meter.peak_memory >= 200 << 20
    assert meter.peak_pids >= 12
    assert idle.cpu_seconds < meter.cpu_seconds
    assert idle.peak_memory < meter.peak_memory
    assert idle.peak_pids >= 1


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

    wait_for(has_none)  # its cgroups go a moment after it, where the engine is busy


@pytest.mark.skipif(not installed("generic"), reason="generic is not installed: clawbench install generic")
def test_a_claw_has_a_row(client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claw_costs, "installed", lambda name: name == "generic")
    monkeypatch.setattr(claw_costs, "ROUNDS", 1)
    said: list[str] = []
    table = claw_costs.run(client, said.append)
    claw, _version, *numbers, share = [next(iter(column.cells)) for column in table.columns]
    assert claw == "generic"
    assert all(float(str(number)) > 0 for number in numbers)
    assert 0 < int(str(share).rstrip("%")) <= 100
    assert "nanobot is not installed, and left out" in said


def test_a_benchmark_that_there_is_not_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claw"]) == 2
    assert "claws" in capsys.readouterr().out
