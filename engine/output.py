"""What a command in a container says, read from the engine from its first byte on.

docker-py reads past the buffer in which the head of the engine's answer came in. On a busy machine what a quick
command says comes in together with that head: it would be lost, and what follows misread. So it is read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO

from docker.api.client import APIClient

_HEADER = struct.Struct(">BxxxL")
"""Of a frame: which stream, how many bytes. See the engine's API, attach to a container, stream format."""
_STDERR = 2
_MOST = 16 << 20


def run_execution(api: APIClient, execution: str, sinks: Sequence[BinaryIO]) -> tuple[bytes, bytes]:
    """Start what `exec_create` made, and gather its stdout and stderr until both are closed.

    Args:
        api: the engine.
        execution: its id.
        sinks: files for the two streams, which are written to as they come; or none.

    Returns:
        both; what is beyond 16 MiB of one goes to its file alone.
    """
    gathered = (bytearray(), bytearray())
    for number, chunk in frames(api, execution):
        if sinks:
            sinks[number].write(chunk)
            sinks[number].flush()
        gathered[number].extend(chunk[: max(0, _MOST - len(gathered[number]))])
    return bytes(gathered[0]), bytes(gathered[1])


def frames(api: APIClient, execution: str) -> Iterator[tuple[int, bytes]]:
    """Start what `exec_create` made.

    Returns:
        what it says as it comes, each piece with 0 for stdout and 1 for stderr, until the engine closes or is
        gone.
    """
    socket: Any = api.exec_start(execution, socket=True)
    response = socket._response  # docker-py keeps it there, so that it stays open
    with closing(response):
        # a command may say nothing for longer than any other answer of the engine may take
        getattr(socket, "_sock", socket).settimeout(None)
        buffered = response.raw._fp.fp
        while len(header := buffered.read(_HEADER.size)) == _HEADER.size:
            stream, left = _HEADER.unpack(header)
            while left and (piece := buffered.read1(left)):
                left -= len(piece)
                yield int(stream == _STDERR), piece
