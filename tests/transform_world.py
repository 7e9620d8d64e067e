"""A client library's requests on their way through transforms to a provider, and its replies on their way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
from dialects.clients import Wire, openai_client
from dialects.server import DialectServer

from gateway.metering.reader import ReplyReader
from gateway.transforms import ReplyConverter, Transforms


class Through(httpx2.BaseTransport):
    """What a gateway does with transforms, between a client library and a server."""

    def __init__(self, *names: str) -> None:
        self._transforms = Transforms(names)
        self._carrier = httpx2.HTTPTransport()
        self.bodies: list[bytearray] = []
        """Each reply's bytes as the client gets them."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.read())
        api, sent = self._transforms.request(
            "responses" if request.url.path.endswith("/responses") else "chat", body
        )
        url = str(request.url).replace("/responses", "/chat/completions")
        headers = {
            name: value for name, value in request.headers.items() if name in ("authorization", "content-type")
        }
        answer = self._carrier.handle_request(
            httpx2.Request("POST", url, headers=headers, content=json.dumps(sent).encode())
        )
        stream = "event-stream" in answer.headers.get("content-type", "")
        reader = ReplyReader(api, streaming=stream, listeners=self._transforms.listeners(api))
        converts = "/responses" in str(request.url) and answer.status_code == 200
        converter = ReplyConverter(stream, body) if converts else None
        self.bodies.append(bytearray())
        assert isinstance(answer.stream, httpx2.SyncByteStream)
        passed = _Passed(answer.stream, reader, converter, self.bodies[-1])
        return httpx2.Response(
            answer.status_code, headers={"content-type": answer.headers["content-type"]}, stream=passed
        )

    def close(self) -> None:
        self._carrier.close()


class _Passed(httpx2.SyncByteStream):
    def __init__(
        self, inner: httpx2.SyncByteStream, reader: ReplyReader, converter: ReplyConverter | None, kept: bytearray
    ) -> None:
        self._inner, self._reader, self._converter, self._kept = inner, reader, converter, kept

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            decoded = self._reader.feed(piece)
            made = self._converter.feed(decoded) if self._converter else decoded
            self._kept += made
            if made:
                yield made
        rest = self._converter.finish() if self._converter else b""
        self._kept += rest
        yield rest
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
