"""What the gateway is measured between: a provider that streams, a proxy that buffers, a client that takes times.

Each chunk holds the moment at which it was sent, on the clock that all processes of the machine share
(CLOCK_MONOTONIC), so that the client knows how old it is when it arrives.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

CHAT_PATH = "/v1/chat/completions"
MODEL = "timed"
START_SECONDS = 30.0
_SSE = {"Content-Type": "text/event-stream; charset=utf-8"}
_DONE = "[DONE]"


@dataclass(frozen=True)
class Route:
    """A way to the provider."""

    name: str
    connector: Callable[[], aiohttp.BaseConnector]
    base: str
    """The address's part before `/v1/…`."""


@dataclass
class Timing:
    """What one stream's client saw, in seconds."""

    first_byte: float
    """From the request to the first byte of the reply's body."""
    lateness: list[float] = field(default_factory=list)
    """Of each chunk: from its sending to its arrival."""


class LostError(RuntimeError):
    """A stream's chunks are not those that were sent for it, in order."""


def request_body(name: str, chunks: int, pause: float) -> bytes:
    """A request for a stream of that many chunks, with that many seconds between two of them."""
    asked = json.dumps({"name": name, "chunks": chunks, "pause": pause})
    body = {"model": MODEL, "messages": [{"role": "user", "content": asked}], "stream": True}
    return json.dumps(body).encode()


async def timed_stream(session: aiohttp.ClientSession, base: str, name: str, chunks: int, pause: float) -> Timing:
    """Ask for a stream and time it.

    Args:
        session: of the route.
        base: of the route.
        name: comes back in every chunk, so that crossed streams are seen.
        chunks: how many.
        pause: seconds between two.

    Raises:
        LostError: chunks are missing, doubled, out of order or another stream's.
    """
    began = time.monotonic()
    async with session.post(
        base + CHAT_PATH, data=request_body(name, chunks, pause), headers={"Content-Type": "application/json"}
    ) as response:
        response.raise_for_status()
        timing, got, rest = Timing(0.0), [], b""
        async for data in response.content.iter_any():
            arrived = time.monotonic()
            timing.first_byte = timing.first_byte or arrived - began
            *events, rest = (rest + data).split(b"\n\n")
            for told in map(_told, events):
                if told is not None:
                    got.append((told["name"], told["number"]))
                    timing.lateness.append(arrived - told["sent"])
    if got != [(name, number) for number in range(chunks)] or rest:
        raise LostError(f"the stream {name} came as {got[:3]} … {got[-3:]}, {len(got)} of {chunks} chunks")
    return timing


def _told(event: bytes) -> Mapping[str, Any] | None:
    """What a chunk says; None for those without a text."""
    text = event.removeprefix(b"data: ").decode()
    choices = [] if text == _DONE else json.loads(text)["choices"]
    return json.loads(choices[0]["delta"]["content"]) if choices else None


async def _serve_stream(request: web.Request) -> web.StreamResponse:
    asked = json.loads((await request.json())["messages"][0]["content"])
    response = web.StreamResponse(headers=_SSE)
    await response.prepare(request)
    head = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    for number in range(asked["chunks"]):
        content = json.dumps({"name": asked["name"], "number": number, "sent": time.monotonic()})
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": None}
        await response.write(_event(head | {"choices": [choice]}))
        await asyncio.sleep(asked["pause"])
    usage = {"prompt_tokens": 1, "completion_tokens": asked["chunks"], "total_tokens": 1 + asked["chunks"]}
    await response.write(_event(head | {"choices": [], "usage": usage}))
    await response.write(f"data: {_DONE}\n\n".encode())
    await response.write_eof()
    return response


def _event(chunk: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _run_provider(told: Connection) -> None:
    async def serve() -> None:
        app = web.Application()
        app.router.add_post(CHAT_PATH, _serve_stream)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        told.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


def _run_buffering_proxy(told: Connection, upstream: str) -> None:
    """One thread per request, and a reply goes on when all of it is there."""
    address = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            connection = http.client.HTTPConnection(address)
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            whole = reply.read()
            connection.close()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.headers["Content-Type"])
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Nothing is logged, as in the gateway."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        told.send(server.server_address[1])
        server.serve_forever()


@contextmanager
def _process(run: Callable[..., None], *arguments: str) -> Iterator[str]:
    """A server in a process of its own; yields its address."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(there, *arguments), daemon=True)
    process.start()
    try:
        if not here.poll(START_SECONDS):
            raise RuntimeError(f"{run.__name__} did not start")
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.kill()
        process.join()


@contextmanager
def provider() -> Iterator[str]:
    """A provider that streams what a request asks for; yields its address."""
    with _process(_run_provider) as address:
        yield address


@contextmanager
def buffering_proxy(upstream: str) -> Iterator[str]:
    """A proxy with a thread per request, by http.server, that buffers whole replies; yields its address."""
    with _process(_run_buffering_proxy, upstream) as address:
        yield address
