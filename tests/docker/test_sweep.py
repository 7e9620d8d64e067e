"""Sweeping: what a killed run left behind goes, and nothing else.

Any run on the engine sweeps when it begins, those of the tests beside as well. So what is to be swept is owned by
a process that lives until all of it is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from docker.errors import NotFound
from docker.models.containers import Container
from support.workspace_fixtures import any_image, engine, is_image_removed, is_removed

from common.processes import is_gone, this_process
from workspace.owner import CASE, KEPT_PREFIX, MAKER, OWNER, RUN, labels, sweep

docker_needed = pytest.mark.docker


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    with engine() as client:
        yield client


Make = Callable[..., Container]


@pytest.fixture
def make(client: docker.DockerClient) -> Iterator[Make]:
    """Makes containers of a given owner, which are gone at the end."""
    made: list[Container] = []

    def create(owner: str | None, *, running: bool = False, prefix: str = "") -> Container:
        marks = {RUN: "sweep-tests", CASE: ""} | ({OWNER: owner} if owner is not None else {})
        while True:
            container = client.containers.create(
                any_image(client),
                ["sleep", "1000"],
                entrypoint=[],
                init=True,
                network_mode="none",
                name=f"{prefix}clawbench-tests.{uuid.uuid4().hex}",
                labels=marks,
            )
            made.append(container)
            if not running:
                return container
            with suppress(NotFound):  # another machine's is anyone's to sweep until it runs
                container.start()
                return container

    yield create
    for container in made:
        with suppress(NotFound):
            container.remove(force=True, v=True)


@dataclass(frozen=True)
class Maker:
    """A process that owns what is made in its name."""

    process: subprocess.Popen[str]
    label: str

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def maker() -> Iterator[Maker]:
    text = "import sys; from common.processes import this_process as me; print(me(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        maker = Maker(process, process.stdout.readline().strip())
        yield maker
        maker.end()


def changed(owner: str, position: int, value: str) -> str:
    """An owner's label with one of its parts (machine, pid, start time) changed."""
    parts = owner.split(":")
    parts[position] = value
    return ":".join(parts)


def stays(client: docker.DockerClient, container: Container) -> bool:
    with suppress(NotFound):
        return client.containers.get(str(container.id)).id == container.id
    return False


@docker_needed
@pytest.mark.parametrize("running", [False, True])
def test_containers_of_dead_owners_are_removed(
    client: docker.DockerClient, make: Make, maker: Maker, *, running: bool
) -> None:
    container = make(maker.label, running=running)
    sweep(client)
    assert stays(client, container)
    maker.end()
    sweep(client)
    assert is_removed(client, container.id)


@docker_needed
def test_owned_kept_and_foreign_containers_stay(client: docker.DockerClient, make: Make, maker: Maker) -> None:
    containers = [
        make(this_process(), running=True),
        make(this_process()),
        make(maker.label, prefix=KEPT_PREFIX),
        make(None, running=True),
        make(""),
    ]
    maker.end()
    swept = sweep(client)
    for container in containers:
        assert stays(client, container)
        assert f"container {container.name}" not in swept


@docker_needed
def test_only_unnamed_images_of_dead_runs_are_removed(
    client: docker.DockerClient, make: Make, maker: Maker
) -> None:
    base = make(None)
    made = {
        owner: str(base.commit(changes=[f'LABEL {MAKER}="{owner}"', f'LABEL test="{uuid.uuid4()}"']).id)
        for owner in (maker.label, this_process(), "")
    }
    tag = uuid.uuid4().hex
    named = base.commit(repository="clawbench-tests", tag=tag, changes=[f'LABEL {MAKER}="{maker.label}"'])
    try:
        maker.end()
        sweep(client)
        assert is_image_removed(client, made[maker.label])
        left = {row["Id"] for row in client.api.images(filters={"label": MAKER})}
        assert {made[this_process()], str(named.id)} <= left
    finally:
        for image in [*made.values(), f"clawbench-tests:{tag}"]:
            with suppress(NotFound):
                client.images.remove(image)


@docker_needed
def test_sweep_returns_what_it_removed(client: docker.DockerClient, make: Make, maker: Maker) -> None:
    """By whoever sweeps it: a run beside may have been quicker, and then it is tried again."""
    maker.end()
    ended, base, told = maker.label, make(None), False
    while not told:
        name = f"clawbench-tests.{uuid.uuid4().hex}"
        client.api.create_container(any_image(client), ["true"], name=name, labels={OWNER: ended})
        marks = [f'LABEL {MAKER}="{ended}"', f'LABEL test="{uuid.uuid4()}"']
        image = client.api.commit(base.id, changes=marks)["Id"]
        swept = sweep(client)
        assert is_removed(client, name)
        assert is_image_removed(client, image)
        told = {f"container {name}", f"image {image[:19]}"} <= set(swept)


@docker_needed
def test_containers_of_another_machine_are_removed_only_once_they_have_ended(
    client: docker.DockerClient, make: Make
) -> None:
    elsewhere = changed(this_process(), 0, str(uuid.uuid4()))
    running, over = make(elsewhere, running=True), make(elsewhere, running=True)
    over.kill()
    with suppress(NotFound):  # whoever sweeps now may be quicker
        over.wait()
    sweep(client)
    assert stays(client, running)
    assert is_removed(client, over.id)


@docker_needed
def test_concurrent_sweeps_do_not_fail(client: docker.DockerClient, make: Make, maker: Maker) -> None:
    containers = [make(maker.label, running=True) for _ in range(4)]
    base = make(None)
    images = [
        str(base.commit(changes=[f'LABEL {MAKER}="{maker.label}"', f'LABEL test="{uuid.uuid4()}"']).id)
        for _ in range(12)
    ]
    maker.end()
    text = "import docker; from workspace.owner import sweep; sweep(docker.from_env(timeout=600))"
    root = Path(__file__).parents[2]
    sweeps = [subprocess.Popen([sys.executable, "-c", text], cwd=root) for _ in range(3)]
    assert [process.wait() for process in sweeps] == [0, 0, 0]
    assert all(is_removed(client, container.id) for container in containers)
    assert all(is_image_removed(client, image) for image in images)


def test_a_process_is_identified_by_pid_and_start_time(maker: Maker) -> None:
    mine = this_process()
    ended = maker.label
    assert not is_gone(ended)
    maker.end()
    assert not is_gone(mine)
    assert is_gone(ended)
    # the pid lives, but is another process's now
    assert is_gone(changed(mine, 2, "1"))
    assert is_gone(changed(mine, 2, "None"))
    assert is_gone(changed(mine, 1, "no-pid"))
    assert not is_gone(changed(ended, 0, "another-machine"))


def test_a_zombie_has_ended() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, this_process().encode())
        os._exit(0)
    owner = os.read(reading, 1000).decode()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(owner)
    os.waitpid(pid, 0)
    os.close(reading)
    os.close(writing)


def test_a_command_name_may_have_spaces_and_parentheses(tmp_path: Path) -> None:
    link = tmp_path / "a ) b (c) Z 1"
    link.symlink_to("/bin/sleep")
    process = subprocess.Popen([link, "1000"])
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text()
        started = text.rpartition(")")[2].split()[19]
        assert not is_gone(changed(changed(this_process(), 1, str(process.pid)), 2, started))
    finally:
        process.kill()
        process.wait()


def test_a_process_in_another_pid_namespace_counts_as_alive() -> None:
    """Two runs in containers of their own may share the engine and the kernel, and not see each other."""
    text = "from common.processes import this_process; print(this_process())"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    if done.returncode != 0:
        pytest.skip(f"no pid namespace here: {done.stderr}")
    assert not is_gone(done.stdout.strip())


def test_labels_name_owner_run_and_case() -> None:
    assert labels("r", "c") == {OWNER: this_process(), RUN: "r", CASE: "c"}
