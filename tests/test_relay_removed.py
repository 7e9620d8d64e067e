"""A provider's model calls a tool that the filter took out: the claw gets a call that it does not know."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from dialects.server import MODEL
from relay_world import World
from test_relay import PATHS, canned, fresh, named, post, request_of, socket_of, world

from gateway.models import Api
from gateway.removed_calls import alias

__all__ = ["fresh", "world"]

CALLS: dict[Api, Any] = {
    "chat": {
        "id": "c",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "cron", "arguments": "{}"}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3},
    },
    "responses": {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": MODEL,
        "output": [{"type": "function_call", "id": "f", "call_id": "call_1", "name": "cron", "arguments": "{}"}],
        "usage": {"input_tokens": 5, "output_tokens": 3},
    },
    "messages": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "tool_use", "id": "call_1", "name": "cron", "input": {}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 3},
    },
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("api", PATHS)
def test_a_removed_tools_call_gets_a_name_that_no_claw_knows(fresh: World, api: Api, compressed: bool) -> None:
    path = socket_of(fresh, allowed_tools=("exec",))
    tools = [named(api, "exec"), named(api, "cron")]
    whole = json.dumps(CALLS[api]).encode()
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    fresh.server.canned.append(canned(200, gzip.compress(whole) if compressed else whole, **headers))
    status, body = post(path, PATHS[api], request_of(api, tools=tools), Accept_Encoding="gzip")
    assert status == 200
    assert json.loads(body) == json.loads(json.dumps(CALLS[api]).replace('"cron"', f'"{alias("cron")}"'))

    # what the claw says of it later reaches the model in the model's own words
    said = request_of(api, tools=tools, metadata={"told": f"unknown tool {alias('cron')}"})
    fresh.server.canned.append(canned(200, whole))
    post(path, PATHS[api], said)
    assert fresh.server.received[-1].json["metadata"] == {"told": "unknown tool cron"}
    counts = fresh.client.close_case("case")
    assert (counts.turns, counts.tokens.output) == (2, 6)
    assert [line["removed_calls"] for line in fresh.log()] == [["cron"], ["cron"]]


def test_a_stream_of_pieces_is_renamed_on_its_way(fresh: World) -> None:
    path = socket_of(fresh, allowed_tools=("exec",))
    pieces = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "1", "function": delta}]}}]}
        for delta in ({"name": "cr", "arguments": ""}, {"name": "on", "arguments": ""}, {"arguments": "{}"})
    ]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    body = b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in [*pieces, last])
    stream = {"Content-Type": "text/event-stream"}
    for extra in ({}, {"Content-Encoding": "gzip"}):
        sent = gzip.compress(body + b"data: [DONE]\n\n") if extra else body + b"data: [DONE]\n\n"
        fresh.server.canned.append(lambda _http, sent=sent, extra=extra: (200, stream | extra, [sent]))
        tools = [named("chat", "exec"), named("chat", "cron")]
        status, got = post(path, PATHS["chat"], request_of("chat", tools=tools, stream=True))
        assert status == 200
        assert got.endswith(b"data: [DONE]\n\n")
        events = [json.loads(line[6:]) for line in got.decode().splitlines() if line.startswith("data: {")]
        deltas = [call for one in events for call in one["choices"][0]["delta"].get("tool_calls", [])]
        assert "".join(call["function"].get("name", "") for call in deltas) == alias("cron")


def test_a_reply_that_calls_no_removed_tool_passes_byte_for_byte(fresh: World) -> None:
    path = socket_of(fresh, allowed_tools=("cron",))
    whole = json.dumps(CALLS["chat"], indent=3).encode()
    fresh.server.canned.append(canned(200, whole))
    tools = [named("chat", "exec"), named("chat", "cron")]
    assert post(path, PATHS["chat"], request_of("chat", tools=tools)) == (200, whole)
