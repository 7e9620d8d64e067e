"""Pulling from a real registry that throttles, fails and comes back."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from bench_run import ROOT
from registry_world import Registry, breaking, refusing, registry, until

from engine.pulling import Fault, PullError
from workspace.errors import ImageMissingError
from workspace.images import described, find_image, name_to_pull
from workspace.inventory import Inventory, OwnImage
from workspace.pulls import AT_ONCE, Pulls
from workspace.registry import throttle_of

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
    return Pulls(world.client, tmp_path, first_wait=0.05)


def in_processes(
    home: Path, names: list[str], have_begun: Callable[[], bool], released: threading.Event
) -> list[str]:
    """Pull images, each in a process of its own, none to its end before all have begun; what they said."""
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
    while not (all(path.stat().st_size for path in outputs) and have_begun()):
        assert not any(process.poll() for process in processes)
        time.sleep(0.1)
    released.set()
    assert [process.wait(300) for process in processes] == [0] * len(names)
    return [line for path in outputs for line in path.read_text().splitlines()]


def test_an_image_is_pulled_once_and_few_at_once_over_all_processes(world: Registry, tmp_path: Path) -> None:
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


def test_a_server_s_error_is_tried_again(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    world.fault = refusing(503, times=2)
    said: list[str] = []
    pulls.pull(name, said.append)
    assert sum("broke off (received unexpected HTTP status: 503" in line for line in said) == 2
    assert world.client.images.get(name).attrs["RepoDigests"] == described(world.client, name)["digests"]


def test_a_connection_that_breaks_off_in_a_blob_is_survived(world: Registry, pulls: Pulls) -> None:
    name = world.publish(size=100_000)
    world.fault = breaking(1)
    pulls.pull(name, lambda _: None)
    assert world.client.images.get(name)


def test_silence_is_given_up_and_tried_again(world: Registry, tmp_path: Path) -> None:
    name = world.publish()
    released = threading.Event()
    world.fault = until(released)

    def say(line: str) -> None:
        if "timed out" in line:
            released.set()

    Pulls(world.client, tmp_path, first_wait=0.05, patience=3).pull(name, say)
    assert released.is_set()


def test_a_registry_that_never_answers_is_given_up(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    world.fault = refusing(502)
    with pytest.raises(PullError, match="502") as caught:
        pulls.pull(name, lambda _: None)
    assert caught.value.fault is Fault.BROKEN
    assert Inventory(world.client, pulls.home).images() == []


@pytest.mark.parametrize("status", [404, 403, 401])
def test_what_is_missing_or_denied_is_not_tried_again(world: Registry, pulls: Pulls, status: int) -> None:
    name = world.name("nowhere")
    world.fault = refusing(status) if status != 404 else None
    asked = len(world.asked)
    with pytest.raises(PullError) as caught:
        pulls.pull(name, lambda _: None)
    assert caught.value.fault is Fault.REFUSED
    assert sum("GET" in line and "/manifests/" in line for line in world.asked[asked:]) == 1


def test_a_registry_that_throttles_is_left_alone_until_it_goes_on(world: Registry, pulls: Pulls) -> None:
    name, other = world.publish(), world.publish()
    world.fault = refusing(429, Retry_After="2", RateLimit_Limit="100;w=21600")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "lets no more" in line:
            world.fault = None

    pulls.pull(name, say)
    told = [line for line in said if "lets no more" in line]
    assert len(told) == 1
    assert "(429: 100 in 6 h): it goes on at 20" in told[0]
    # what another process was told holds for this one
    hold = next((pulls.home / "held-back").glob("*.json"))
    hold.write_text(json.dumps(json.loads(hold.read_text()) | {"until": time.time() + 5}))
    said.clear()
    pulls.pull(other, said.append)
    assert "lets no more" in said[0]
    assert said[1:] == [f"pulling {other}"]


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("Retry-After", "seconds"),
        ("Retry-After", "date"),
        ("X-Retry-After", "moment"),
        ("RateLimit-Reset", "seconds"),
        ("X-RateLimit-Reset", "moment"),
    ],
)
def test_a_reset_may_be_told_in_several_ways(world: Registry, header: str, kind: str) -> None:
    before = int(time.time())
    reset = before + 1000
    value = {"seconds": "1000", "moment": str(reset), "date": formatdate(reset, usegmt=True)}[kind]
    world.fault = refusing(429, **{header: value})
    until = throttle_of(world.name("any"), "toomanyrequests").until
    assert until is not None
    assert reset <= until <= reset + time.time() - before + 1


def test_a_registry_that_wants_too_long_a_wait_is_an_error_with_the_time(world: Registry, pulls: Pulls) -> None:
    world.fault = refusing(429, Retry_After="999999")
    with pytest.raises(PullError, match=r"no more images be pulled \(429\) until 20.* too long to wait"):
        pulls.pull(world.publish(), lambda _: None)


def test_the_time_may_be_in_the_words_alone() -> None:
    before = time.time()
    throttle = throttle_of("127.0.0.1:9/x", "toomanyrequests: retry-after: 1m30.5s, allowed: 44000/minute")
    assert throttle.until is not None
    assert 90 <= throttle.until - before <= 91 + time.time() - before
    assert throttle_of("127.0.0.1:9/x", "toomanyrequests: no more") == throttle_of("127.0.0.1:9/x", "")


def test_a_platform_is_pulled_and_looked_for(world: Registry, pulls: Pulls) -> None:
    name = world.publish(platform="linux/arm64")
    pulls.pull(name, lambda _: None)
    assert described(world.client, name)["platform"] == "linux/arm64"
    other = Pulls(world.client, pulls.home, "linux/amd64")
    assert not other.is_here(name)
    assert Pulls(world.client, pulls.home, "linux/arm64").is_here(name)


def test_an_instance_s_image_is_that_of_its_row(world: Registry, pulls: Pulls) -> None:
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


def test_a_full_disk_is_told_as_one(world: Registry, pulls: Pulls) -> None:
    name = world.publish()
    world.fault = refusing(404, message="write /var/lib/docker/x: no space left on device")
    with pytest.raises(OSError, match="No space left") as caught:
        pulls.pull(name, lambda _: None)
    assert caught.value.errno == errno.ENOSPC
