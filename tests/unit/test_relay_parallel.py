"""Many requests at the same time: nothing is lost or mixed up, and a kill leaves whole lines in the log."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from support.dialects.profiles import OPENAI
from support.dialects.received import Received
from support.dialects.server import MODEL, DialectServer
from support.relay_world import World, relaying
from support.waiting import wait_for

from gateway.client import GatewayError

STREAMS = 16
PIECES = 20
"""Chunks of each stream."""
AT_ONCE = 8


def body(name: str) -> bytes:
    """A request that tells its stream's name."""
    asked = {"model": MODEL, "messages": [{"role": "user", "content": name}], "stream": True}
    return json.dumps(asked | {"stream_options": {"include_usage": True}}).encode()


def chunk(name: str, number: int) -> bytes:
    choice = {"index": 0, "delta": {"content": f"{name}:{number} \u00e9\u65e5"}, "finish_reason": None}
    head = {"id": name, "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [choice]}
    return f"data: {json.dumps(head, ensure_ascii=False)}\n\n".encode()


def last(name: str, output: int) -> bytes:
    usage = {"prompt_tokens": 7, "completion_tokens": output, "total_tokens": 7 + output}
    head = {"id": name, "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    return f"data: {json.dumps(head | {'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode()


def whole_stream(name: str) -> list[bytes]:
    """What is sent for a request, cut at odd places."""
    number = int(re.findall(r"\d+", name)[0])
    sent = b"".join([*(chunk(name, place) for place in range(PIECES)), last(name, number)])
    size = 40 + number
    return [sent[start : start + size] for start in range(0, len(sent), size)]


def answer(received: Received) -> tuple[int, dict[str, str], list[bytes]]:
    name = received.json["messages"][0]["content"]
    return 200, {"Content-Type": "text/event-stream"}, whole_stream(name)


def test_parallel_streams_are_not_mixed_up(tmp_path: Path) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path) as world:
        server.always = answer
        names = [f"stream-{number}" for number in range(STREAMS)]
        for name in names:
            world.open(name)
        bodies = asyncio.run(_all_at_once(world, names))
        for name, came in bodies.items():
            assert came == b"".join(whole_stream(name))
        for number, name in enumerate(names):
            counts = world.client.close_case(name)
            assert (counts.requests, counts.turns, counts.endings["ok"]) == (1, 1, 1)
            assert (counts.tokens.input, counts.tokens.output) == (7, number or None)  # 0 is not believed


async def _all_at_once(world: World, names: list[str]) -> dict[str, bytes]:
    begun = asyncio.Barrier(len(names))

    async def stream(name: str) -> bytes:
        connector = aiohttp.UnixConnector(str(world.sockets[name]))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post("http://gateway/v1/chat/completions", data=body(name)) as response,
        ):
            # no stream is read to its end before all have begun
            await begun.wait()
            return await response.read()

    return dict(zip(names, await asyncio.gather(*map(stream, names)), strict=True))


async def _many(world: World, number: int) -> None:
    """So many requests, some at the same time; half of them are streams."""
    left = iter(range(number))
    connector = aiohttp.UnixConnector(str(world.sockets["case"]))

    async def work(session: aiohttp.ClientSession) -> None:
        for place in left:
            asked = {
                "model": MODEL,
                "messages": [{"role": "user", "content": "x" * 500}],
                "stream": place % 2 == 0,
            }
            options = {"stream_options": {"include_usage": True}} if asked["stream"] else {}
            data = json.dumps(asked | options).encode()
            async with session.post("http://gateway/v1/chat/completions", data=data) as response:
                assert response.status == 200
                await response.read()

    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(AT_ONCE)))


def test_a_kill_in_the_middle_leaves_whole_lines(tmp_path: Path) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path) as world:
        world.open()
        ended = threading.Event()

        def work() -> None:
            # the kill breaks the requests off in one way or another
            with suppress(aiohttp.ClientError, OSError):
                asyncio.run(_many(world, 100_000))
            ended.set()

        threading.Thread(target=work, daemon=True).start()
        wait_for(lambda: len(server.sent) > 3 * AT_ONCE)
        world.gateway._process.kill()
        world.gateway._process.wait()
        assert ended.wait(300)
        # each line is whole, and the lines are what the provider charged for, except for requests in progress
        lines = world.log()
        assert 2 * AT_ONCE <= len(lines) <= len(server.received)
        assert all(line["ending"] == "ok" and line["tokens"] for line in lines)
        assert sum(line["tokens"]["output"] for line in lines) <= sum(charge.output for charge in server.charges)
        with pytest.raises(GatewayError):
            world.client.counts("case")
