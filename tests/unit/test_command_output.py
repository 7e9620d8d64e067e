"""What a command says is had from its first byte on, however the engine's answer comes in."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from evaluation.harness_client import HarnessClient
from workspace.running import Workspace

SAID = [(1, b"the first line\n"), (2, b"a complaint\n"), (1, b"x" * 70_000 + b"\nthe end\n")]


def answer_of(request: bytes) -> bytes:
    """An engine's answer; that to a started command is in one piece with what the command says."""
    path = request.split(b" ", 2)[1]
    if path.endswith(b"/start"):
        frames = b"".join(struct.pack(">BxxxL", stream, len(text)) + text for stream, text in SAID)
        return b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + frames
    status, body = (
        (b"200 OK", b'{"ExitCode": 0, "Id": "e"}') if path.endswith(b"/json") else (b"201 Created", b'{"Id": "e"}')
    )
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, len(body)) + body


def serve(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # closed: the test is over
        with connection:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(1 << 16)
            head, _, body = request.partition(b"\r\n\r\n")
            length = next(
                (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0"
            )
            while len(body) < int(length.partition(b":")[2]):
                body += connection.recv(1 << 16)
            connection.sendall(answer_of(request))


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "engine"))
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        client = docker.DockerClient(base_url=f"unix://{tmp_path}/engine", version="1.41")
        yield Container(attrs={"Id": "c"}, client=client)
        client.close()
        listener.shutdown(socket.SHUT_RDWR)


def test_output_that_arrives_with_the_answers_head_is_not_lost(container: Container) -> None:
    result = Workspace(container).run(["true"], timeout=60)
    assert result.stdout == b"".join(text for stream, text in SAID if stream == 1)
    assert result.stderr == b"a complaint\n"
    assert result.exit_code == 0


def test_the_official_harness_loses_no_output_either(container: Container) -> None:
    watched = HarnessClient(container.client, {}).containers.create(image="i", command="c")
    result = watched.exec_run("true", workdir="/", user="root")
    assert (result.exit_code, result.output) == (0, b"".join(text for _, text in SAID))
    execution = watched.client.api.exec_create("e", "true")["Id"]
    assert b"".join(watched.client.api.exec_start(execution, stream=True)) == result.output
