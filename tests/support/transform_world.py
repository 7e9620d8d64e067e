"""A client library's requests on their way through transforms to a provider, and its replies on their way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai

from gateway.metering.reader import ReplyReader
from gateway.transforms import Transforms
from support.dialects.clients import Wire, openai_client
from support.dialects.server import DialectServer


class Through(httpx2.BaseTransport):
    """What a gateway does with transforms, between a client library and a server."""

    def __init__(self, *names: str) -> None:
        self._transforms = Transforms(names)
        self._carrier = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.read())
        sent = self._transforms.request("chat", body)
        headers = {
            name: value for name, value in request.headers.items() if name in ("authorization", "content-type")
        }
        answer = self._carrier.handle_request(
            httpx2.Request("POST", request.url, headers=headers, content=json.dumps(sent).encode())
        )
        stream = "event-stream" in answer.headers.get("content-type", "")
        reader = ReplyReader("chat", streaming=stream, listeners=self._transforms.listeners("chat"))
        assert isinstance(answer.stream, httpx2.SyncByteStream)
        return httpx2.Response(
            answer.status_code,
            headers={"content-type": answer.headers["content-type"]},
            stream=_Passed(answer.stream, reader),
        )

    def close(self) -> None:
        self._carrier.close()


class _Passed(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, reader: ReplyReader) -> None:
        self._inner, self._reader = inner, reader

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            self._reader.feed(piece)
            yield piece
        self._reader.finish(complete=True)

    def close(self) -> None:
        self._inner.close()


def client(server: DialectServer, *names: str) -> openai.OpenAI:
    """OpenAI's library, talking to a provider through these transforms."""
    return openai_client(Through(*names), server.base_url, server.key)  # type: ignore[arg-type] # any transport does


def plain_client(server: DialectServer) -> openai.OpenAI:
    """OpenAI's library, talking to a provider itself."""
    return openai_client(Wire(), server.base_url, server.key)


def commands(count: int) -> tuple[str, ...]:
    """Shell commands for a model to call its tool with."""
    return tuple(f"echo {number}" for number in range(count))


def markers(body: Any) -> int:
    """How many cache markers a request holds."""
    return json.dumps(body).count('"cache_control"')
