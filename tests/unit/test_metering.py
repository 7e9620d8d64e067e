"""Whole replies through the reader: as documented, cut anywhere, broken off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.metering_replies import REPLIES
from support.metering_world import Reply, completion, cut, read

from gateway import sse
from gateway.case_models import Api
from gateway.metering import reader
from gateway.metering.reader import Metered, ReplyReader


def follow(reply: Reply, parts: list[bytes]) -> tuple[Metered, list[dict[str, Any]]]:
    heard: list[dict[str, Any]] = []
    following = ReplyReader(reply.api, streaming=reply.streaming, listeners=[heard.append])
    for part in parts:
        following.feed(part)
    return following.finish(complete=True), heard


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.name)
def test_a_documented_reply(reply: Reply) -> None:
    whole = follow(reply, [reply.body])
    assert whole[0] == reply.metered
    assert whole[1]
    assert follow(reply, [reply.body[place : place + 1] for place in range(len(reply.body))]) == whole


@given(reply=st.sampled_from(REPLIES), places=st.lists(st.integers(0, 5000), max_size=12))
def test_any_cut_gives_the_same(reply: Reply, places: list[int]) -> None:
    assert follow(reply, cut(reply.body, places)) == follow(reply, [reply.body])


@given(
    reply=st.sampled_from(REPLIES),
    places=st.lists(st.integers(0, 5000), max_size=8),
    flips=st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 255)), max_size=3),
    end=st.integers(0, 5000),
    complete=st.booleans(),
)
def test_any_cut_of_a_damaged_reply_gives_the_same(
    *, reply: Reply, places: list[int], flips: list[tuple[int, int]], end: int, complete: bool
) -> None:
    body = bytearray(reply.body)
    for place, mask in flips:
        body[place % len(body)] ^= mask
    del body[end + 1 :]
    found = []
    for parts in (cut(bytes(body), places), [bytes(body)]):
        following = ReplyReader(reply.api, streaming=reply.streaming)
        for part in parts:
            following.feed(part)
        found.append(following.finish(complete=complete))
    assert found[0] == found[1]


def test_a_body_that_is_too_large_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(completion({"content": "x" * 2000})).encode()
    monkeypatch.setattr(reader, "MAX_BODY", 1000)
    metered = read("chat", body, streaming=False)
    assert (metered.ending, metered.usage) == ("malformed", None)
    monkeypatch.setattr(reader, "MAX_BODY", len(body))
    assert read("chat", body, streaming=False).ending == "ok"


def test_an_event_that_is_too_large_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 100)
    metered = read("chat", b"data: " + b"x" * 100)
    assert metered == Metered("malformed", error="an event is larger than 100 bytes")


def test_what_a_listener_raises_is_not_swallowed() -> None:
    def listen(_: dict[str, Any]) -> None:
        raise LookupError

    following = ReplyReader("chat", streaming=True, listeners=[listen])
    with pytest.raises(LookupError):
        following.feed(REPLIES[0].body)


SHAPE_NAMES = """
    type choices delta message content text tool_calls index finish_reason usage error code model response output
    item status incomplete_details reason x_groq prompt_tokens completion_tokens input_tokens output_tokens
    total_tokens cost prompt_tokens_details cached_tokens cache_creation
"""
NAMES = st.sampled_from(SHAPE_NAMES.split())
WORDS = st.sampled_from(
    ["error", "message_start", "response.completed", "message_delta", "text", "tool_use", "", "stop"]
)
ATOMS = st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.floats(), WORDS)
JSON = st.recursive(
    ATOMS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
APIS: list[Api] = ["chat", "responses", "messages"]


@given(api=st.sampled_from(APIS), objects=st.lists(st.dictionaries(NAMES, JSON, max_size=5), max_size=4))
def test_any_json_is_accepted(api: Api, objects: list[dict[str, Any]]) -> None:
    streamed = read(api, "".join(f"data: {json.dumps(data)}\n\n" for data in objects).encode())
    bodies = [read(api, json.dumps(data).encode(), streaming=False) for data in objects]
    for metered in (streamed, *bodies):
        assert metered.ending in ("ok", "empty", "malformed", "dropped", "server_error", "rate_limited")
        assert metered.told_cost is None or metered.told_cost >= 0
