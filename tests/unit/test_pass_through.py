"""Bytes pass the gateway unchanged: the official libraries at one end, each provider's dialect at the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects.clients import PLACEHOLDER, Wire
from support.dialects.delivery import Delivery, cut
from support.dialects.profiles import DIALECTS, Dialect
from support.dialects.server import MODEL, DialectServer
from support.relay_world import COMMANDS, World, ask, charged, classes, converse, relaying, runs, user
from support.waiting import wait_for

from gateway.case_models import Api

TALK = [(dialect, api) for dialect in DIALECTS.values() for api in dialect.apis]
DELIVERIES = {
    "odd": Delivery(sizes=(1, 2, 3, 5, 7, 11), alive=True),
    "endless": Delivery(done=False),
}
TURNS = [
    (dialect, api, delivery, (number + place) % 2 == 0)
    for number, (dialect, api) in enumerate(TALK)
    for place, delivery in enumerate(DELIVERIES)
]
"""Dialect, format, delivery, stream: each pair of values occurs."""
each_dialect = pytest.mark.parametrize(
    ("dialect", "api"), TALK, ids=[f"{dialect.name}-{api}" for dialect, api in TALK]
)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Dialect], World]]:
    """One gateway per dialect for all of this module's tests."""
    with ExitStack() as stack:
        worlds: dict[str, World] = {}

        def world(dialect: Dialect) -> World:
            if dialect.name not in worlds:
                server = stack.enter_context(DialectServer(dialect))
                folder = tmp_path_factory.mktemp(dialect.name)
                worlds[dialect.name] = stack.enter_context(relaying(server, folder))
            return worlds[dialect.name]

        yield world


def check_exchanges(world: World, wire: Wire) -> None:
    """Both ends saw the same, exchange by exchange; the key came where it belongs, and the placeholder nowhere."""
    server = world.server
    assert len(wire.seen) == len(server.received) == len(server.sent) > 0
    for seen, received, sent in zip(wire.seen, server.received, server.sent, strict=True):
        assert received.body == seen.request
        assert (received.method, received.target) == (seen.method, seen.target)
        assert seen.got(sent.body)
        assert seen.status == sent.status
        for name in ("Content-Type", "Retry-After"):
            assert seen.answered.get(name.lower()) == sent.headers.get(name)
        assert received.header("Accept-Encoding") == "identity"
        for name in ("Accept", "Content-Type", "User-Agent", "anthropic-version"):
            assert received.header(name) == seen.headers.get(name.lower())
        keys = {name.lower(): value for name, value in received.headers if world.server.key in value}
        x_api_key = world.server.dialect.name == "anthropic"
        assert keys == ({"x-api-key": server.key} if x_api_key else {"authorization": f"Bearer {server.key}"})
        assert PLACEHOLDER not in str(received.headers)
        assert server.key not in str(seen.answered)


@pytest.mark.parametrize(
    ("dialect", "api", "delivery", "stream"),
    TURNS,
    ids=[f"{dialect.name}-{api}-{name}-{'stream' if stream else 'whole'}" for dialect, api, name, stream in TURNS],
)
def test_a_turn_passes_byte_for_byte(
    world_of: Callable[[Dialect], World], dialect: Dialect, api: Api, stream: bool, delivery: str
) -> None:
    world = world_of(dialect)
    world.server.reset(runs(*COMMANDS), delivery=DELIVERIES[delivery])
    wire = world.open()
    said = ask(wire, api, user(), stream=stream)
    assert json.loads(said.calls[0][2]) == {"command": COMMANDS[0]}
    assert said.text == "I run step 1."
    check_exchanges(world, wire)
    counts = world.client.close_case("case")
    assert (counts.requests, counts.turns, counts.last_ending) == (1, 1, "ok")
    assert (counts.tokens.input, counts.tokens.output) == told(world.server)


def raw(wire: Wire, api: Api, stream: bool) -> None:
    """A request written by hand, with one tool, its answer not looked at."""
    path = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}[api]
    body: dict[str, Any] = {"model": MODEL, "stream": stream, "stream_options": {"include_usage": True}}
    body["input" if api == "responses" else "messages"] = user()
    if api == "messages":
        body = body | {"max_tokens": 9}
    function = {"name": "exec", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
    named = {"chat": {"type": "function", "function": function}, "responses": {"type": "function"} | function}
    body["tools"] = [named.get(api, {"name": "exec", "input_schema": function["parameters"]})]
    headers = {"anthropic-version": "2023-06-01", "Content-Type": "application/json"}
    headers |= {"Accept": "*/*", "User-Agent": "u"}
    request = httpx2.Request("POST", f"http://gateway{path}", content=json.dumps(body), headers=headers)
    answer = wire.handle_request(request)
    assert isinstance(answer.stream, httpx2.SyncByteStream)
    list(answer.stream)
    answer.close()


def told(server: DialectServer) -> tuple[int, int]:
    """Input and output tokens as the provider tells them: one that tells nothing of its cache tells the prompt."""
    fresh, read, written, output = charged(server)
    return (fresh + read + written if server.dialect.name in ("vllm", "dashscope") else fresh), output


@both_ways
@each_dialect
def test_a_conversation_with_tools_passes(
    world_of: Callable[[Dialect], World], dialect: Dialect, api: Api, stream: bool
) -> None:
    world = world_of(dialect)
    world.server.reset(runs(*COMMANDS))
    wire = world.open()
    assert converse(wire, api, stream=stream) == list(COMMANDS)
    check_exchanges(world, wire)
    counts = world.client.close_case("case")
    assert (counts.requests, counts.turns) == (3, 3)
    assert counts.tool_surface == ["exec"]
    assert sum(counts.stop_reasons.values()) == 3


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_chunking_of_any_text_passes_and_is_counted(
    world_of: Callable[[Dialect], World], data: st.DataObject
) -> None:
    dialect, api = data.draw(st.sampled_from(TALK))
    world = world_of(dialect)
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=6).map(tuple))
    command = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
    alive, stream = data.draw(st.booleans()), data.draw(st.booleans())
    world.server.reset(runs(command), delivery=Delivery(sizes=sizes, alive=alive))
    wire = world.open()
    raw(wire, api, stream)
    check_exchanges(world, wire)
    counts = world.client.close_case("case")
    assert (counts.turns, counts.endings["ok"]) == (1, 1)
    assert (counts.tokens.input, counts.tokens.output) == told(world.server)


@settings(max_examples=60, deadline=None)
@given(
    body=st.binary(max_size=400),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4).map(tuple),
    kind=st.sampled_from(["text/event-stream", "application/json", "text/html; charset=latin-1"]),
    status=st.sampled_from([200, 201, 400, 404, 422, 500]),
)
def test_a_reply_without_meaning_passes_unchanged(
    world_of: Callable[[Dialect], World], body: bytes, sizes: tuple[int, ...], kind: str, status: int
) -> None:
    world = world_of(DIALECTS["openai"])
    world.server.reset()
    headers = {"Content-Type": kind}
    pieces = list(cut([body], sizes))
    world.server.canned.append(lambda _request: (status, headers, pieces))
    wire = world.open()
    raw(wire, "chat", True)
    assert bytes(wire.seen[0].body) == b"".join(pieces)
    assert wire.seen[0].status == status
    counts = world.client.close_case("case")
    assert counts.endings["ok"] == 0
    assert classes(counts.tokens) in ((0, 0, 0, 0), (None,) * 4)


def test_no_chunk_waits_for_the_next(world_of: Callable[[Dialect], World]) -> None:
    world = world_of(DIALECTS["openai"])
    world.server.reset(runs(*COMMANDS), delivery=Delivery())
    arrived: list[threading.Event] = [threading.Event() for _ in range(100)]
    late: list[int] = []

    def wait_for_the_one_before(number: int) -> None:
        if number and not late and not arrived[number - 1].wait(120):
            late.append(number)

    world.server.before_piece = wait_for_the_one_before
    wire = world.open()
    request = httpx2.Request(
        "POST",
        "http://gateway/v1/chat/completions",
        content=json.dumps({"model": MODEL, "messages": user(), "stream": True}),
        headers={"Content-Type": "application/json"},
    )
    answer = wire.handle_request(request)
    assert isinstance(answer.stream, httpx2.SyncByteStream)
    got, sent = 0, world.server.sent[0]
    for piece in answer.stream:
        got += len(piece)
        # Every piece that the server has written by now is here once all its bytes are.
        if got == len(sent.body):
            next(event for event in arrived if not event.is_set()).set()
    answer.close()
    assert not late
    assert sent.complete


def test_a_library_that_leaves_at_done_has_its_whole_reply(
    world_of: Callable[[Dialect], World], tmp_path: Path
) -> None:
    """OpenAI's closes the connection there: only the end of the HTTP body may still come."""
    world = world_of(DIALECTS["openai"])
    world.server.reset(runs(*COMMANDS), delivery=Delivery(pause=0.05))
    wire = world.open(cassette=tmp_path / "cassette.jsonl")
    assert ask(wire, "chat", user(), stream=True).calls
    wire.close()
    wait_for(lambda: world.client.counts("case").last_ending is not None)
    counts = world.client.close_case("case")
    assert (counts.turns, counts.last_ending) == (1, "ok")
    assert len((tmp_path / "cassette.jsonl").read_text().splitlines()) == 1
