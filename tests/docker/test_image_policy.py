"""What becomes of images: only the suite's own go, none that anyone needs, those needed latest first."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from docker.errors import ImageNotFound
from filelock import FileLock
from support.bench_run import ROOT, run_bench
from support.registry_world import Registry, registry, until_asked
from support.rows_world import as_json_lines, made_up

from adapters.registry import installed
from clawbench.controller.image_eviction import ImageEviction
from clawbench.controller.image_schedule import AT_WORK, ImageSchedule
from evaluation.lists import listed_instances
from workspace.inventory import Inventory, Needs, image_lock
from workspace.pulls import Pulls

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def world() -> Iterator[Registry]:
    with registry() as started:
        yield started


class House:
    """Four instances' images here, pulled by the suite, each with one that was made of it."""

    def __init__(self, world: Registry, home: Path, names: Sequence[str]) -> None:
        self.client = world.client
        self.home = home
        self.inventory = Inventory(world.client, home)
        self.names = names
        self.made = [f"clawbench-prepared:{name.split('/')[1].split(':')[0]}" for name in self.names]
        self.told: list[str] = []
        for name, made in zip(self.names, self.made, strict=True):
            Pulls(world.client, home).pull(name, self.told.append)
            world.client.images.build(fileobj=io.BytesIO(f"FROM {name}\nLABEL a=b".encode()), tag=made, rm=True)
            world.made.append(made)
            self.inventory.note(made, source=name)
        self.size = self.inventory.size(self.inventory.images()[:1])

    def tidy(
        self,
        policy: str | int,
        needed: Sequence[int | None],
        of_others: frozenset[str] = frozenset(),
        *,
        built: Sequence[str] = (),
        is_whole: bool = True,
    ) -> str:
        """Apply a policy where the instances are needed so; which of them are here then, as in `0-23`."""
        instances = {name: str(number) for number, name in enumerate(self.names)}
        house = ImageEviction(
            self.inventory, policy, instances=instances, built=built, soon=2, tell=self.told.append
        )
        house.tidy({str(number): when for number, when in enumerate(needed) if when is not None}, of_others)
        here = [(self._has(name), self._has(made)) for name, made in zip(self.names, self.made, strict=True)]
        assert not is_whole or all(name == made for name, made in here), "an instance's images go together"
        return "".join(str(number) if name else "-" for number, (name, _) in enumerate(here))

    def _has(self, name: str) -> bool:
        try:
            return bool(self.client.images.get(name))
        except ImageNotFound:
            return False


@pytest.fixture(scope="module")
def names(world: Registry) -> list[str]:
    return [world.publish(size=1_000_000) for _ in range(4)]


@pytest.fixture
def house(world: Registry, names: list[str], tmp_path: Path) -> Iterator[House]:
    built = House(world, tmp_path, names)
    yield built
    for name in (*built.made, *built.names):
        with suppress(ImageNotFound):
            world.client.images.remove(name)


def test_prune_removes_what_no_coming_case_needs(house: House) -> None:
    assert house.tidy("keep", [None, None, None, None]) == "0123"
    assert house.tidy("prune", [AT_WORK, None, 700, None]) == "0-2-"
    assert len(house.inventory.images()) == 4
    assert {line.split()[3] for line in house.told[-2:]} == {house.names[1], house.names[3]}


def test_a_budget_evicts_the_images_whose_next_use_is_furthest_away(house: House) -> None:
    total = house.inventory.size(house.inventory.images())
    assert 4_000_000 <= total < 4_100_000, "what is shared counts once"
    assert house.tidy(total, [None, None, None, None]) == "0123"
    assert house.tidy(total - 1, [AT_WORK, 9, None, 30]) == "01-3"
    assert house.tidy(2 * house.size, [AT_WORK, 9, None, 30]) == "01--"
    # one at work and one that is about to be stay, whatever the budget
    assert house.tidy(1, [AT_WORK, 1, None, None]) == "01--"
    assert "in use or needed soon" in house.told[-1]


def test_images_that_are_built_here_go_before_those_that_are_pulled(house: House) -> None:
    built = [house.names[2]]
    assert house.tidy("prune", [1, 1, None, 1], built=built) == "0123"
    assert house.tidy(3 * house.size + 1000, [1, None, None, 1], built=built) == "01-3"


def test_an_image_that_the_suite_did_not_pull_is_never_removed(world: Registry, house: House) -> None:
    foreign, other = world.publish(), house.names[1]
    world.client.images.pull(foreign)
    Pulls(world.client, house.home).pull(foreign, print)  # it is here already
    # a name that somebody gave to another image since
    world.client.images.get(foreign).tag(other.rpartition(":")[0], "latest")
    assert house.tidy("prune", [None, 1, None, None]) == "-1--"
    house.tidy(1, [None, None, None, None], is_whole=False)
    assert house.inventory.images() == []
    assert world.client.images.get(foreign).id == world.client.images.get(other).id


def test_an_image_with_a_torn_record_is_not_ours(house: House) -> None:
    note = next(path for path in house.home.rglob("own-images/*/*.json") if house.names[1] in path.read_text())
    note.write_text("")
    ours = {image.name for image in house.inventory.images()}
    assert len(ours) == 7
    assert house.tidy("prune", [1, 1, 1, None]) == "012-"
    assert not note.exists()


def test_an_image_in_use_is_not_removed(world: Registry, house: House) -> None:
    container = world.client.containers.create(house.made[0], ["none"])
    try:
        assert house.tidy("prune", [None, None, 1, 1]) == "0-23"
        assert house.tidy(1, [None, None, 9, None]) == "0---"
    finally:
        container.remove()
    with image_lock(house.home, house.names[0]):  # as who pulls it has it
        assert house.tidy("prune", [None] * 4) == "0---"
    assert house.tidy("prune", [None] * 4) == "----"


def test_an_image_that_is_pulled_again_right_after_its_removal_is_ours(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, release = house.names[0], FileLock.release

    def pulled_at_once(lock: FileLock) -> None:
        """As by a process that waits for the lock."""
        monkeypatch.undo()
        release(lock)
        Pulls(house.client, house.home).pull(gone, house.told.append)

    monkeypatch.setattr(FileLock, "release", pulled_at_once)
    assert house.inventory.remove(next(image for image in house.inventory.images() if image.name == gone))
    assert house.told[-1] == f"pulling {gone}"
    assert gone in {image.name for image in house.inventory.images()}


def test_images_that_another_live_run_needs_are_not_removed(house: House) -> None:
    script = (
        "import sys, time; from pathlib import Path; from workspace.inventory import Needs\n"
        "needs = Needs(Path(sys.argv[1])); needs.tell([sys.argv[2]]); print('told', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(house.home), house.names[2]]
    needs = Needs(house.home)
    needs.tell([house.names[3]])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "told\n"
            assert needs.of_others() == {house.names[2]}
            assert house.tidy("prune", [1, None, None, None], needs.of_others()) == "0-2-"
        finally:
            process.kill()
    assert needs.of_others() == frozenset()
    assert house.tidy(1, [None] * 4, needs.of_others()) == "----"
    needs.close()
    assert not list((house.home / "needed-images").iterdir())


def test_when_an_instance_is_needed() -> None:
    cases = [(f"{claw}-{instance}", instance) for instance in "abc" for claw in ("x", "y")]
    upcoming = ImageSchedule(cases, finished=["x-a", "y-a"])
    assert upcoming.needed() == {"b": 0, "c": 2}
    upcoming.begin("x-b")
    assert upcoming.needed() == {"b": AT_WORK, "c": 1}
    upcoming.begin("y-b")
    upcoming.end("x-b")
    upcoming.begin("x-c")
    upcoming.end("y-b")
    assert upcoming.needed() == {"c": AT_WORK}
    assert upcoming.begin("x-b"), "once more"
    assert not upcoming.begin("x-unknown")
    assert not upcoming.begin("x-a"), "its verdict is only repeated"
    assert not upcoming.end("x-a")
    assert upcoming.needed() == {"b": AT_WORK, "c": AT_WORK}


@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_a_run_pulls_ahead_and_prunes(world: Registry, tmp_path: Path) -> None:
    """The images hold no system at all: each case is an infrastructure error, for its image, as it should be."""
    # more than there are workers: what all begin at once is pulled by whoever comes first
    ids = [one for one in listed_instances() if not one.base_commit and "multilingual" in one.markers][:6]
    rows = [made_up(one, image=world.publish(size=50_000)) for one in ids]
    foreign = str(rows[-1]["image"])
    world.client.images.pull(foreign)
    world.asked.clear()
    world.fault = until_asked(world, repositories=2)
    names = " or ".join(one.instance_id for one in ids)
    run = run_bench(
        tmp_path,
        "images",
        *("-n", "1", "-k", f"nanobot and ({names})", "--image-policy=prune", "--skip-checks", "--infra-retries=0"),
        f"--dataset={as_json_lines(rows, tmp_path)}",
    )
    world.fault = None
    assert set(run.outcomes().values()) == {"infrastructure"}, run.output
    for row in rows[:-1]:
        assert world.pulls(str(row["image"])) == 1
        with pytest.raises(ImageNotFound):
            world.client.images.get(str(row["image"]))
        assert f"removed the image {row['image']}" in run.output
    assert "images: ahead: pulling" in run.output
    assert world.client.images.get(foreign)
