"""A case's exchanges in a file, to be answered from again: `Recorder` writes them, `Player` answers.

A cassette is a file of JSON lines, one per exchange in the order in which the replies ended; each is on disk
before the next begins. It holds what passed between the claw and the gateway, so a replay needs neither the
provider nor its transforms. It holds no key: none is in the headers that are kept, and keys in bodies are masked.
A request is answered if an equal one was recorded (`gateway.replay_diff`).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator

from common.errors import ClawbenchError
from gateway.case_models import Api, Strict
from gateway.exchange import Exchange
from gateway.redact import mask, mask_bytes
from gateway.replay_diff import Masked, Masks, ReplayDiffError, first_difference, likeness

__all__ = ["CassetteError", "Player", "Recorded", "Recorder", "ReplayDiffError"]

KEPT_HEADERS = frozenset({"content-type", "cache-control", "retry-after", "retry-after-ms"})
"""The headers of a reply that clients act on."""


class CassetteError(ClawbenchError, ValueError):
    """A file is not a cassette; the message names the line."""


def _chunk_as_json(chunk: bytes) -> str | dict[str, str]:
    try:
        return chunk.decode()
    except UnicodeDecodeError:  # a chunk may end inside a character
        return {"base64": base64.b64encode(chunk).decode()}


def _chunk_of_json(value: Any) -> bytes:
    match value:
        case str():
            return value.encode()
        case {"base64": str(text)}:
            return base64.b64decode(text)
    raise ValueError("not a chunk of a body")


class Recorded(Strict):
    """One exchange as it was recorded."""

    api: Api
    path: str
    request: Any
    """The claw's JSON. It may hold halves of surrogate pairs, which pydantic's own strings cannot."""
    status: int
    headers: dict[str, str]
    chunks: list[Annotated[bytes, PlainValidator(_chunk_of_json)]]
    """The reply's body, cut as it was sent."""
    complete: bool
    """Whether the reply came to its end: the connection broke after the chunks otherwise."""


class Recorder:
    """Writes the cassette of one attempt at a case."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        """Begin a cassette, replacing an older one (raises OSError).

        Args:
            path: of the file; its folder is created if needed.
            secrets: keys to mask.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        self._path = path
        self._secrets = tuple(secrets)

    def record(
        self,
        exchange: Exchange,
        request: bytes,
        *,
        headers: Mapping[str, str],
        chunks: Sequence[bytes],
        complete: bool = True,
    ) -> None:
        """Add an exchange; it is on disk when this returns.

        Args:
            exchange: whose reply is over.
            request: the claw's JSON, as it sent it.
            headers: of the reply; those that clients act on are kept.
            chunks: the reply's body as the claw got it, in the same pieces.
            complete: whether the reply came to its end.

        Raises:
            OSError: it cannot be written.
        """
        line = {
            "api": exchange.api,
            "path": exchange.path,
            "request": json.loads(mask_bytes(request, self._secrets)),
            "status": exchange.status,
            "headers": {
                name.lower(): mask(value, self._secrets)
                for name, value in headers.items()
                if name.lower() in KEPT_HEADERS
            },
            "chunks": [_chunk_as_json(chunk) for chunk in self._without_keys(chunks)],
            "complete": complete,
        }
        with self._path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _without_keys(self, chunks: Sequence[bytes]) -> list[bytes]:
        """The chunks without keys, which may span two of them; no length changes."""
        whole, cut, start = mask_bytes(b"".join(chunks), self._secrets), [], 0
        for chunk in chunks:
            cut.append(whole[start : start + len(chunk)])
            start += len(chunk)
        return cut


class Player:
    """Answers requests from a cassette: the same requests in the same order always get the same answers."""

    def __init__(self, path: Path) -> None:
        """Read a cassette; a crash may have cut its last line short, which is then left out.

        Args:
            path: of the file.

        Raises:
            OSError: it cannot be read.
            CassetteError: a line does not belong to a cassette.
        """
        self._masks = Masks()
        self._requests: list[tuple[str, Masked]] = []
        self._replies: dict[tuple[str, str], list[Recorded]] = {}
        self._played: dict[tuple[str, str], int] = {}
        for recorded in _read(path):
            masked = self._masks.mask(recorded.request)
            self._requests.append((recorded.path, masked))
            self._replies.setdefault((recorded.path, masked.digest), []).append(recorded)

    @property
    def model(self) -> str | None:
        """The model that the recorded requests ask for."""
        asked = (masked.parts.get("model") for _, masked in self._requests)
        return next((model for model in asked if isinstance(model, str)), None)

    def answer(self, path: str, request: Any) -> Recorded:
        """The reply to a request; one that was recorded several times gets its replies in turn, then the last one.

        Args:
            path: of the request, such as `/v1/chat/completions`.
            request: the claw's JSON.

        Raises:
            ReplayDiffError: no such request was recorded; the message says where it differs.
        """
        masked = self._masks.mask(request)
        key = (path, masked.digest)
        if key not in self._replies:
            raise ReplayDiffError(self._difference(path, masked))
        turn = self._played.get(key, 0)
        self._played[key] = turn + 1
        replies = self._replies[key]
        return replies[min(turn, len(replies) - 1)]

    def _difference(self, path: str, sent: Masked) -> str:
        """How a request differs from the recorded one that is most like it."""
        candidates = [
            (likeness(recorded, sent), -number, recorded)
            for number, (recorded_path, recorded) in enumerate(self._requests)
            if recorded_path == path
        ]
        if not candidates:
            return f"the cassette holds no request to {path}, of {len(self._requests)} in all"
        _, number, recorded = max(candidates, key=lambda candidate: candidate[:2])
        where = f"request {1 - number} of the {len(self._requests)} in the cassette"
        return (
            f"this request is not in the cassette; it differs from {where} at {first_difference(recorded, sent)}"
        )


def _read(path: Path) -> list[Recorded]:
    # A line is whole once its end is there: what follows the last one was cut off by a crash.
    *lines, _torn = path.read_bytes().split(b"\n")
    read = []
    for number, line in enumerate(lines, start=1):
        try:
            read.append(Recorded.model_validate(json.loads(line)))
        except ValueError as error:
            raise CassetteError(f"{path}: line {number} does not belong to a cassette: {error}") from error
    return read
