"""What docker-py lacks for commands in containers: their complete output, and whether their container has ended.

docker-py reads from the socket, past the buffer into which the head of the engine's reply was read. On a busy machine,
the output of a quick command arrives together with that head: it would be lost, and the rest misread.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO

from docker.api.client import APIClient
from docker.errors import APIError
from docker.models.containers import Container

_HEADER = struct.Struct(">BxxxL")
"""A frame's header: the number of the stream, and how many bytes follow (see "stream format" in the engine's API)."""
_STDERR = 2
_KEPT = 16 << 20
_PATIENCE = 30.0
"""Seconds after which the engine's word that a container runs is accepted, even if no command can be started in it."""
_POLL = 0.1


def run_execution(api: APIClient, execution: str, sinks: Sequence[BinaryIO]) -> tuple[bytes, bytes]:
    """Start what `exec_create` made, and collect its stdout and stderr until both are closed.

    Args:
        api: the engine.
        execution: the id that `exec_create` returned.
        sinks: two files, to which stdout and stderr are written as they arrive; or none.

    Returns:
        stdout and stderr; what is beyond the first 16 MiB of one is only written to its file.
    """
    kept = (bytearray(), bytearray())
    for number, chunk in frames(api, execution):
        if sinks:
            sinks[number].write(chunk)
            sinks[number].flush()
        kept[number].extend(chunk[: max(0, _KEPT - len(kept[number]))])
    return bytes(kept[0]), bytes(kept[1])


def frames(api: APIClient, execution: str) -> Iterator[tuple[int, bytes]]:
    """Start what `exec_create` made, and yield its output as it arrives, until the engine closes the stream.

    Args:
        api: the engine.
        execution: the id that `exec_create` returned.

    Yields:
        0 for stdout or 1 for stderr, and a piece of it.
    """
    socket: Any = api.exec_start(execution, socket=True)
    response = socket._response  # docker-py keeps the response there, so that it stays open
    with closing(response):
        # a command may be silent for longer than the timeout of other replies
        getattr(socket, "_sock", socket).settimeout(None)
        buffered = response.raw._fp.fp
        while len(header := buffered.read(_HEADER.size)) == _HEADER.size:
            stream, left = _HEADER.unpack(header)
            while left and (piece := buffered.read1(left)):
                left -= len(piece)
                yield int(stream == _STDERR), piece


def has_ended(api: APIClient, container: Container) -> bool:
    """Whether a container has ended or is about to end; to be called when a command in it was killed.

    The engine notices the end of a container only some time after its processes have ended, on a busy machine a long
    time. Until then it says that the container runs. So this starts a command in it: once the first process of a PID
    namespace has ended, the kernel refuses to start others (pid_namespaces(7)).

    Args:
        api: the engine.
        container: its attributes are up to date afterwards.

    Raises:
        docker.errors.NotFound: it was removed.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        container.reload()
        if not container.attrs["State"]["Running"]:
            return True
        if _can_start(api, container) or time.monotonic() > deadline:
            return False
        time.sleep(_POLL)


def _can_start(api: APIClient, container: Container) -> bool:
    try:
        execution = api.exec_create(container.id, ["/bin/sh", "-c", ":"], user="root")["Id"]
        api.exec_start(execution, detach=True)
    except APIError:
        return False
    return True
