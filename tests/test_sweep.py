"""Sweeping: what a killed run left behind goes, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import NotFound
from docker.models.containers import Container
from workspace_fixtures import any_image, engine, is_removed

from workspace.owner import CASE, KEPT_PREFIX, MAKER, OWNER, RUN, is_gone, labels, sweep, this_process

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
        if running:
            container.start()
        return container

    yield create
    for container in made:
        with suppress(NotFound):
            container.remove(force=True, v=True)


@pytest.fixture
def ended() -> str:
    """The label of a process that has ended."""
    text = "from workspace.owner import this_process; print(this_process())"
    root = Path(__file__).parent.parent
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=root
    ).stdout.strip()


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
def test_containers_whose_owner_is_gone_are_swept(
    client: docker.DockerClient, make: Make, ended: str, *, running: bool
) -> None:
    container = make(ended, running=running)
    sweep(client)
    assert is_removed(client, container.id)


@docker_needed
def test_what_has_an_owner_or_was_kept_or_is_nobody_s_stays(
    client: docker.DockerClient, make: Make, ended: str
) -> None:
    containers = [
        make(this_process(), running=True),
        make(this_process()),
        make(ended, prefix=KEPT_PREFIX),
        make(None, running=True),
        make(""),
    ]
    swept = sweep(client)
    for container in containers:
        assert stays(client, container)
        assert f"container {container.name}" not in swept


@docker_needed
def test_images_that_a_dead_run_did_not_come_to_name_go_and_no_others(
    client: docker.DockerClient, make: Make, ended: str
) -> None:
    base = make(None)
    made = {
        owner: str(base.commit(changes=[f'LABEL {MAKER}="{owner}"', f'LABEL test="{uuid.uuid4()}"']).id)
        for owner in (ended, this_process(), "")
    }
    named = base.commit(repository="clawbench-tests", tag=uuid.uuid4().hex, changes=[f'LABEL {MAKER}="{ended}"'])
    try:
        swept = sweep(client)
        assert any(line.startswith("image ") and line.split()[1] in made[ended] for line in swept)
        left = {str(image.id) for image in client.images.list(filters={"label": MAKER})}
        assert made[ended] not in left
        assert {made[this_process()], str(named.id)} <= left
    finally:
        for image in [*made.values(), named.tags[0]]:
            with suppress(NotFound):
                client.images.remove(image)


@docker_needed
def test_another_machine_s_containers_go_only_when_they_have_ended(
    client: docker.DockerClient, make: Make
) -> None:
    elsewhere = changed(this_process(), 0, str(uuid.uuid4()))
    running, over = make(elsewhere, running=True), make(elsewhere, running=True)
    over.kill()
    over.wait()
    sweep(client)
    assert stays(client, running)
    assert is_removed(client, over.id)


@docker_needed
def test_sweeps_at_the_same_time_do_not_quarrel(client: docker.DockerClient, make: Make, ended: str) -> None:
    containers = [make(ended, running=True) for _ in range(4)]
    text = "import docker; from workspace.owner import sweep; sweep(docker.from_env())"
    root = Path(__file__).parent.parent
    sweeps = [subprocess.Popen([sys.executable, "-c", text], cwd=root) for _ in range(3)]
    assert [process.wait() for process in sweeps] == [0, 0, 0]
    assert all(is_removed(client, container.id) for container in containers)


def test_a_process_is_known_by_its_start_as_well_as_its_pid(ended: str) -> None:
    mine = this_process()
    assert not is_gone(mine)
    assert is_gone(ended)
    # the pid lives, but is another process's now
    assert is_gone(changed(mine, 2, "1"))
    assert is_gone(changed(mine, 2, "None"))
    assert is_gone(changed(mine, 1, "no-pid"))
    assert not is_gone(changed(ended, 0, "another-machine"))


def test_a_process_that_is_over_but_not_yet_reaped_is_gone() -> None:
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


def test_a_command_name_with_spaces_and_parentheses_is_no_obstacle(tmp_path: Path) -> None:
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


def test_a_process_in_another_pid_namespace_is_not_taken_for_gone() -> None:
    """Two runs in containers of their own may share the engine and the kernel, and not see each other."""
    text = "from workspace.owner import this_process; print(this_process())"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode != 0:
        pytest.skip(f"no pid namespace here: {done.stderr}")
    assert not is_gone(done.stdout.strip())


def test_labels_name_owner_run_and_case() -> None:
    assert labels("r", "c") == {OWNER: this_process(), RUN: "r", CASE: "c"}
