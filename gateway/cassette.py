"""A case's exchanges on file, to be answered from again: `Recorder` writes them, `Player` answers.

A cassette is a file of JSON lines, one per exchange in the order in which replies ended, each on disk before the
next begins. What is kept is what passed between the claw and the gateway, the reply decoded; so that a replay
needs neither the provider nor its transforms. No key is in it: none is in the headers that are kept, and one
that stood in a body is blotted out. A request is answered if an equal one was recorded (`gateway.departure`).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from gateway.departure import DepartureError, Masked, Masks, first_difference, likeness
from gateway.models import Api
from gateway.redact import mask, mask_bytes

__all__ = ["CassetteError", "DepartureError", "Player", "Recorded", "Recorder"]

KEPT_HEADERS = frozenset({"content-type", "cache-control", "retry-after", "retry-after-ms"})
"""The headers of a reply that clients act on."""


class CassetteError(ValueError):
    """A file is no cassette; the message tells the line."""


class _Base64(BaseModel):
    model_config = ConfigDict(extra="forbid")
    base64: str


class _Line(BaseModel):
    """One exchange, as it is on file."""

    model_config = ConfigDict(extra="forbid")
    api: Api
    path: str
    request: Any
    """Any JSON, even with halves of surrogate pairs, which a string of pydantic's can't hold."""
    status: int
    headers: dict[str, str]
    chunks: list[str | _Base64]
    complete: bool


@dataclass(frozen=True)
class Recorded:
    """A reply as it was recorded."""

    api: Api
    status: int
    headers: Mapping[str, str]
    chunks: tuple[bytes, ...]
    """The body, cut as it was sent."""
    complete: bool
    """Whether it came to its end: the connection broke after the chunks otherwise."""


class Recorder:
    """Writes the cassette of one attempt at a case."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        """Begin a cassette, in place of any that is there (raises OSError).

        Args:
            path: of the file; its folder is made on demand.
            secrets: what must not be in it.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        self._path = path
        self._secrets = tuple(secrets)

    def record(
        self,
        api: Api,
        path: str,
        request: bytes,
        *,
        status: int,
        headers: Mapping[str, str],
        chunks: Sequence[bytes],
        complete: bool = True,
    ) -> None:
        """Add an exchange; it is on disk when this returns (raises OSError).

        Args:
            api: the wire format.
            path: that the claw asked for, such as `/v1/chat/completions`.
            request: the claw's JSON, as it sent it.
            status: of the reply, as the claw got it.
            headers: of the reply; those that clients act on are kept.
            chunks: the reply's body, decoded, as it was cut.
            complete: whether the reply came to its end.
        """
        line = _Line(
            api=api,
            path=path,
            request=json.loads(mask_bytes(request, self._secrets)),
            status=status,
            headers={
                name.lower(): mask(value, self._secrets)
                for name, value in headers.items()
                if name.lower() in KEPT_HEADERS
            },
            chunks=[_as_json(chunk) for chunk in self._without_keys(chunks)],
            complete=complete,
        )
        data = json.dumps(line.model_dump()).encode() + b"\n"
        with self._path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _without_keys(self, chunks: Sequence[bytes]) -> list[bytes]:
        """The chunks without keys, which may stand across two of them; no length changes."""
        whole, cut, start = mask_bytes(b"".join(chunks), self._secrets), [], 0
        for chunk in chunks:
            cut.append(whole[start : start + len(chunk)])
            start += len(chunk)
        return cut


class Player:
    """Answers requests from a cassette: the same requests in the same order always get the same answers."""

    def __init__(self, path: Path) -> None:
        """Read a cassette; its last line may be torn, by a crash while it was written.

        Args:
            path: of the file.

        Raises:
            OSError: it can't be read.
            CassetteError: a line is none of a cassette.
        """
        self._masks = Masks()
        self._requests: list[tuple[str, Masked]] = []
        self._replies: dict[tuple[str, str], list[Recorded]] = {}
        self._played: dict[tuple[str, str], int] = {}
        for line in _read(path):
            masked = self._masks.mask(line.request)
            self._requests.append((line.path, masked))
            reply = Recorded(
                line.api, line.status, line.headers, tuple(map(_from_json, line.chunks)), line.complete
            )
            self._replies.setdefault((line.path, masked.digest), []).append(reply)

    @property
    def model(self) -> str | None:
        """The model that the recorded requests ask for."""
        asked = (masked.parts.get("model") for _, masked in self._requests)
        return next((model for model in asked if isinstance(model, str)), None)

    def answer(self, path: str, request: Any) -> Recorded:
        """The reply to a request; one that was recorded several times gets its replies in turn, then the last.

        Args:
            path: that is asked for.
            request: the claw's JSON.

        Raises:
            DepartureError: no such request was recorded; the message tells where it departs.
        """
        masked = self._masks.mask(request)
        key = (path, masked.digest)
        if key not in self._replies:
            raise DepartureError(self._departure(path, masked))
        turn = self._played.get(key, 0)
        self._played[key] = turn + 1
        replies = self._replies[key]
        return replies[min(turn, len(replies) - 1)]

    def _departure(self, path: str, sent: Masked) -> str:
        """Where a request leaves the recording: compared with the recorded one that it is most like."""
        candidates = [
            (likeness(recorded, sent), -number, recorded)
            for number, (recorded_path, recorded) in enumerate(self._requests)
            if recorded_path == path
        ]
        if not candidates:
            return f"the cassette holds no request to {path}, of {len(self._requests)} in all"
        _, number, recorded = max(candidates, key=lambda candidate: candidate[:2])
        where = f"request {1 - number} of the {len(self._requests)} that the cassette holds"
        return (
            f"this request is not in the cassette; it departs from {where} at {first_difference(recorded, sent)}"
        )


def _read(path: Path) -> list[_Line]:
    # A line is whole once its end is there: what follows the last one was cut off by a crash.
    *lines, _torn = path.read_bytes().split(b"\n")
    read = []
    for number, line in enumerate(lines, start=1):
        try:
            read.append(_Line.model_validate(json.loads(line)))
        except ValueError as error:
            raise CassetteError(f"{path}, line {number} is none of a cassette: {error}") from error
    return read


def _as_json(chunk: bytes) -> str | _Base64:
    """A chunk for JSON: chunks may end inside a character."""
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        return _Base64(base64=base64.b64encode(chunk).decode())


def _from_json(chunk: str | _Base64) -> bytes:
    return chunk.encode() if isinstance(chunk, str) else base64.b64decode(chunk.base64)
