"""A provider's model calls a tool that the filter took out: the claw gets a call that it does not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.dialects.profiles import OPENROUTER
from support.dialects.server import MODEL, DialectServer
from support.relay_world import PATHS, World, canned, named, post, relaying, request_of, socket_of

from gateway.case_models import Api
from gateway.removed_calls import UNKNOWN_TOOL

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


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A provider that speaks all three wire formats."""
    with (
        DialectServer(OPENROUTER) as server,
        relaying(server, tmp_path_factory.mktemp("all"), apis=tuple(PATHS)) as started,
    ):
        yield started


@pytest.fixture
def fresh(world: World) -> World:
    world.server.reset()
    return world


@pytest.mark.parametrize("api", PATHS)
def test_a_removed_tools_call_is_renamed(fresh: World, api: Api) -> None:
    path = socket_of(fresh, allowed_tools=("exec",))
    tools = [named(api, "exec"), named(api, "cron")]
    whole = json.dumps(CALLS[api]).encode()
    fresh.server.canned.append(canned(200, whole))
    status, body = post(path, PATHS[api], request_of(api, tools=tools))
    assert status == 200
    assert json.loads(body) == json.loads(json.dumps(CALLS[api]).replace('"cron"', f'"{UNKNOWN_TOOL}"'))
    counts = fresh.client.close_case("case")
    assert (counts.turns, counts.tokens.output) == (1, 3)
    assert [line["removed_calls"] for line in fresh.log()] == [["cron"]]


def test_a_name_in_pieces_is_renamed_in_a_stream(fresh: World) -> None:
    path = socket_of(fresh, allowed_tools=("exec",))
    pieces = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "1", "function": delta}]}}]}
        for delta in ({"name": "cr", "arguments": ""}, {"name": "on", "arguments": ""}, {"arguments": "{}"})
    ]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    body = b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in [*pieces, last])
    stream = {"Content-Type": "text/event-stream"}
    fresh.server.canned.append(lambda _http: (200, stream, [body + b"data: [DONE]\n\n"]))
    tools = [named("chat", "exec"), named("chat", "cron")]
    status, got = post(path, PATHS["chat"], request_of("chat", tools=tools, stream=True))
    assert status == 200
    assert got.endswith(b"data: [DONE]\n\n")
    events = [json.loads(line[6:]) for line in got.decode().splitlines() if line.startswith("data: {")]
    deltas = [call for one in events for call in one["choices"][0]["delta"].get("tool_calls", [])]
    assert "".join(call["function"].get("name", "") for call in deltas) == UNKNOWN_TOOL


def test_a_reply_that_calls_no_removed_tool_passes_byte_for_byte(fresh: World) -> None:
    path = socket_of(fresh, allowed_tools=("cron",))
    whole = json.dumps(CALLS["chat"], indent=3).encode()
    fresh.server.canned.append(canned(200, whole))
    tools = [named("chat", "exec"), named("chat", "cron")]
    assert post(path, PATHS["chat"], request_of("chat", tools=tools)) == (200, whole)
