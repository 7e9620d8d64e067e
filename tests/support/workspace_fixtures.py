"""What the tests of the workspace share: images with repositories of the tests' own making, and real containers.

Everything that is made here carries the tests' own names and is removed again, whatever happened.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound, NotFound
from docker.models.containers import Container

from adapters.runtimes import default_home
from common.container_exec import run_execution
from demo.task_images import embedded_ids, ensure_image, image_name
from support.waiting import wait_for
from workspace.container_files import client_of
from workspace.owner import labels
from workspace.prepare import PreparedImage, prepare
from workspace.start_tree import StartTree

RUN_ID = "workspace-tests"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
SHELL = "set -eu\n" + "".join(f"export {name}={value}\n" for name, value in IDENTITY.items())


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    with closing(docker.from_env(timeout=600)) as client:
        yield client


def any_image(client: docker.DockerClient) -> str:
    """An image with git, python3 and perl."""
    for name in ("clawbench/demo-python:latest", image_name(embedded_ids()[0])):
        with suppress(ImageNotFound):
            return str(client.images.get(name).id)
    ensure_image(client, embedded_ids()[0], cache=default_home(), say=print)
    return str(client.images.get(image_name(embedded_ids()[0])).id)


@contextmanager
def container_of(client: docker.DockerClient, image: str, **settings: object) -> Iterator[Container]:
    """A running container that does nothing, without a network."""
    container = client.containers.run(
        image,
        ["sleep", "1000"],
        entrypoint=[],
        detach=True,
        init=True,
        user="root",
        working_dir="/",
        labels=labels(RUN_ID),
        **{"network_mode": "none", **settings},  # type: ignore[arg-type]
    )
    try:
        yield container
    finally:
        with suppress(NotFound):
            container.remove(force=True, v=True)


def put(container: Container, files: Mapping[str, bytes], mode: int = 0o755) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    container.put_archive("/", buffer.getvalue())


def done(
    container: Container, command: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a command in a container; its exit code, stdout and stderr, whose order between them nobody knows.

    docker-py's own way loses what comes in together with the head of the engine's answer.
    """
    api = client_of(container).api
    execution = api.exec_create(container.id, list(command), environment=dict(environment or {}))["Id"]
    said, complained = (text.decode(errors="replace") for text in run_execution(api, execution, ()))
    return api.exec_inspect(execution)["ExitCode"], said, complained


def sh(container: Container, script: str) -> str:
    """Run a shell script in a container; its stdout without the last newline."""
    code, said, complained = done(container, ["sh", "-c", SHELL + script])
    assert code == 0, said + complained
    return said.rstrip("\n")


@contextmanager
def built(
    client: docker.DockerClient, script: str, files: Mapping[str, bytes] | None = None
) -> Iterator[tuple[str, str]]:
    """An image in which a shell script ran; its name and what the script said last."""
    name = f"clawbench-tests:{uuid.uuid4().hex}"
    try:
        with container_of(client, any_image(client)) as container:
            if files:
                put(container, files)
            said = sh(container, script)
            container.commit(repository="clawbench-tests", tag=name.partition(":")[2], pause=False)
        yield name, said.rpartition("\n")[2]
    finally:
        with suppress(ImageNotFound):
            source = client.images.get(name)
            for row in client.api.images(filters={"dangling": True}):
                if row["ParentId"] == source.id:  # left by a preparation that a test killed
                    with suppress(APIError):  # a run that begins now sweeps it as well
                        client.images.remove(row["Id"], force=True)
            client.images.remove(name, force=True)


def is_removed(client: docker.DockerClient, container_id: str | None) -> bool:
    """Whether a container is gone, or goes within a minute: another process may be about to remove it."""
    return _is_gone(lambda: client.containers.get(str(container_id)))


def is_image_removed(client: docker.DockerClient, image_id: str) -> bool:
    """The same of an image."""
    return _is_gone(lambda: client.images.get(image_id))


def _is_gone(get: Callable[[], object]) -> bool:
    def is_gone() -> bool:
        try:
            get()
        except NotFound:
            return True
        return False

    return wait_for(is_gone, "a removal")


@contextmanager
def prepared_image(
    client: docker.DockerClient, source: str, base_commit: str, folder: Path, instance_id: str = ""
) -> Iterator[PreparedImage]:
    """The source image, prepared; removed at the end."""
    image = prepare(
        client,
        source,
        instance_id=instance_id or f"tests__{uuid.uuid4().hex[:12]}",
        base_commit=base_commit,
        locks=folder / "locks",
        labels=labels(RUN_ID),
        say=print,
    )
    try:
        yield image
    finally:
        discard(client, image)


def discard(client: docker.DockerClient, image: PreparedImage) -> None:
    for name in (image.tag, image.evaluation):
        with suppress(ImageNotFound, APIError):
            client.images.remove(name, force=True)


def remove_tags(client: docker.DockerClient, *parts: str) -> None:
    """Remove every image name that has one of these in it; a run beside may remove some, and others, meanwhile."""
    tags = [tag for row in client.api.images() for tag in row["RepoTags"] or []]
    for tag in tags:
        if any(part in tag for part in parts):
            with suppress(ImageNotFound):
                client.images.remove(tag)


def start_tree(client: docker.DockerClient, image: PreparedImage, folder: Path) -> StartTree:
    return StartTree.of(client, image, cache=folder / "start-trees", labels=labels(RUN_ID), say=print)


def host_git(folder: Path, *arguments: str, stdin: bytes | None = None, ok: Sequence[int] = (0,)) -> bytes:
    """Run the host's git in a folder, with nobody's configuration."""
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "safe.directory=*", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        env={
            "PATH": "/usr/bin:/bin:/usr/local/bin",
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            **IDENTITY,
        },
    )
    assert done.returncode in ok, done.stderr.decode(errors="replace")
    return done.stdout
