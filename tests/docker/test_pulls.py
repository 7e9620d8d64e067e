"""Pulling from a real registry that throttles, fails and comes back."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.bench_run import ROOT
from support.registry_world import Registry, breaking, refusing, registry, until
from support.waiting import wait_for

from common.errors import DiskError, known_error
from common.image_pull import PullError, PullRefusedError, PullThrottledError
from workspace.instance_images import described, find_image, name_to_pull
from workspace.inventory import Inventory, OwnImage
from workspace.pulls import AT_ONCE, Pulls
from workspace.workspace_errors import ImageMissingError

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def world() -> Iterator[Registry]:
    with registry() as started:
        yield started


@pytest.fixture(autouse=True)
def _healthy(world: Registry) -> Iterator[None]:
    world.most_at_once = 0
    yield
    world.fault = None


@pytest.fixture
def pulls(world: Registry, tmp_path: Path) -> Pulls:
    return Pulls(world.client, tmp_path, first_pause=0.05)


def in_processes(
    home: Path, names: list[str], have_begun: Callable[[], bool], released: threading.Event
) -> list[str]:
    """Pull images, each in a process of its own and all at the same time; returns the lines that they printed."""
    script = (
        "import sys, docker; from pathlib import Path; from workspace.pulls import Pulls\n"
        "pulls = Pulls(docker.from_env(timeout=600), Path(sys.argv[1]))\n"
        "pulls.pull(sys.argv[2], lambda line: print(line, flush=True))"
    )
    outputs = [home / f"{number}.txt" for number in range(len(names))]
    processes = []
    for name, path in zip(names, outputs, strict=True):
        with path.open("w") as output:
            command = [sys.executable, "-c", script, str(home), name]
            processes.append(subprocess.Popen(command, stdout=output, cwd=ROOT))

    def all_have_begun() -> bool:
        assert not any(process.poll() for process in processes)
        return all(path.stat().st_size for path in outputs) and have_begun()

    wait_for(all_have_begun, "all processes to begin")
    released.set()
    assert [process.wait(300) for process in processes] == [0] * len(names)
    return [line for path in outputs for line in path.read_text().splitlines()]


def test_all_processes_together_pull_an_image_once_and_few_at_a_time(world: Registry, tmp_path: Path) -> None:
    wanted, *others = (world.publish() for _ in range(AT_ONCE + 1))
    released = threading.Event()
    world.fault = until(released)
    names = [wanted, wanted, wanted, wanted, *others]
    said = in_processes(tmp_path, names, lambda: world.most_at_once >= AT_ONCE, released)
    for name in (wanted, *others):
        assert said.count(f"pulling {name}") == 1
        own = OwnImage(name, str(world.client.images.get(name).id), name)
        assert own in Inventory(world.client, tmp_path).images()
    assert said.count(f"waiting for another process that pulls {wanted}") == 3
    assert sum("pulls are under way" in line for line in said) == 1
    assert world.most_at_once == AT_ONCE


def test_a_server_error_is_tried_again(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    world.fault = refusing(503, times=2)
    said: list[str] = []
    pulls.pull(name, said.append)
    assert sum("failed (received unexpected HTTP status: 503" in line for line in said) == 2
    assert world.client.images.get(name).attrs["RepoDigests"] == described(world.client, name)["digests"]


def test_a_pull_survives_a_broken_connection(world: Registry, pulls: Pulls) -> None:
    name = world.publish(size=100_000)
    world.fault = breaking(1)
    pulls.pull(name, lambda _: None)
    assert world.client.images.get(name)


def test_a_silent_engine_is_given_up_and_tried_again(world: Registry, tmp_path: Path) -> None:
    name = world.publish()
    released = threading.Event()
    world.fault = until(released)

    def say(line: str) -> None:
        if "timed out" in line:
            released.set()

    Pulls(world.client, tmp_path, first_pause=0.05, patience=3).pull(name, say)
    assert released.is_set()


def test_a_registry_that_keeps_failing_is_given_up(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    world.fault = refusing(502)
    with pytest.raises(PullError, match="502") as caught:
        pulls.pull(name, lambda _: None)
    assert type(caught.value) is PullError
    assert caught.value.is_retried
    assert Inventory(world.client, pulls.home).images() == []


@pytest.mark.parametrize("status", [404, 403, 401])
def test_a_missing_or_denied_image_is_not_tried_again(world: Registry, pulls: Pulls, status: int) -> None:
    name = world.name("nowhere")
    world.fault = refusing(status) if status != 404 else None
    asked = len(world.asked)
    with pytest.raises(PullRefusedError):
        pulls.pull(name, lambda _: None)
    assert sum("GET" in line and "/manifests/" in line for line in world.asked[asked:]) == 1


def test_a_rate_limit_is_waited_out_with_growing_pauses(world: Registry, tmp_path: Path) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)

    world.fault = refusing(429, times=4)
    Pulls(world.client, tmp_path, first_pause=100, wait=wait).pull(world.publish(), lambda _: None)
    assert len(pauses) == 4
    assert all(50 * 2**number <= pause <= 100 * 2**number for number, pause in enumerate(pauses))


def test_a_rate_limit_that_lasts_is_an_error(world: Registry, tmp_path: Path) -> None:
    said: list[str] = []
    world.fault = refusing(429)
    with pytest.raises(PullThrottledError, match="toomanyrequests"):
        Pulls(world.client, tmp_path, wait=lambda _: None).pull(world.publish(), said.append)
    assert "attempt 14 of 14" in said[-2]


def test_images_are_pulled_and_found_by_platform(world: Registry, pulls: Pulls) -> None:
    name = world.publish(platform="linux/arm64")
    pulls.pull(name, lambda _: None)
    assert described(world.client, name)["platform"] == "linux/arm64"
    other = Pulls(world.client, pulls.home, "linux/amd64")
    assert not other.is_here(name)
    assert Pulls(world.client, pulls.home, "linux/arm64").is_here(name)


def test_the_image_of_an_instance_is_the_one_in_its_row(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    assert find_image(pulls, "no__such-1", name, lambda _: None) == name
    found = described(world.client, name)
    assert found["digests"][0].startswith(name.rpartition(":")[0] + "@sha256:")
    assert found["id"] == world.client.images.get(name).id
    with pytest.raises(ImageMissingError, match="no image for no__such-2: looked for sweb"):
        find_image(pulls, "no__such-2", world.name("nowhere"), lambda _: None)
    assert (
        name_to_pull("a__b-1", "sweb.eval.x86_64.a__b-1:latest") == "swebench/sweb.eval.x86_64.a_1776_b-1:latest"
    )


def test_a_full_disk_of_the_engine_is_a_disk_error(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    world.fault = refusing(404, message="write /var/lib/docker/x: no space left on device")
    with pytest.raises(ImageMissingError) as caught:
        find_image(pulls, "no__such-3", name, lambda _: None)
    assert type(known_error(caught.value)) is DiskError
