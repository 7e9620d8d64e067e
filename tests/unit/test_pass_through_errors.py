"""A provider's errors reach the claw as they are, and its library raises what it would raise without us."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
from aiohttp import web
from multidict import CIMultiDict
from support.dialects.delivery import Trouble
from support.dialects.profiles import ANTHROPIC, DEEPSEEK, OPENAI, OPENROUTER, Dialect
from support.dialects.server import DialectServer
from support.relay_world import COMMANDS, World, answered, ask, leave_in_the_middle, relaying, runs, user
from support.waiting import wait_for

from gateway.case_models import Api, Ending
from gateway.downstream import Downstream

STATUSES: list[tuple[int, str, Ending]] = [
    (400, "BadRequestError", "refused"),
    (401, "AuthenticationError", "unauthorized"),
    (403, "PermissionDeniedError", "unauthorized"),
    (404, "NotFoundError", "server_error"),
    (422, "UnprocessableEntityError", "refused"),
    (429, "RateLimitError", "rate_limited"),
    (500, "InternalServerError", "server_error"),
    (503, "InternalServerError", "server_error"),
    (529, "InternalServerError", "server_error"),
]
SPOKEN: list[tuple[Dialect, Api]] = [(OPENAI, "chat"), (OPENAI, "responses"), (ANTHROPIC, "messages")]
each_api = pytest.mark.parametrize(("dialect", "api"), SPOKEN, ids=[api for _, api in SPOKEN])
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Dialect], World]]:
    with ExitStack() as stack:
        worlds: dict[str, World] = {}

        def world(dialect: Dialect) -> World:
            if dialect.name not in worlds:
                server = stack.enter_context(DialectServer(dialect))
                folder = tmp_path_factory.mktemp(dialect.name)
                worlds[dialect.name] = stack.enter_context(relaying(server, folder))
            worlds[dialect.name].server.reset(runs(*COMMANDS))
            return worlds[dialect.name]

        yield world


@pytest.mark.parametrize(
    ("dialect", "api", "stream", "status", "kind", "ending"),
    [
        (*SPOKEN[(number + turn) % 3], (number + turn) % 2 == 0, *status)
        for number, status in enumerate(STATUSES)
        for turn in range(2)
    ],
)
def test_a_status_is_the_librarys_exception(  # noqa: PLR0917 - parametrized
    world_of: Callable[[Dialect], World],
    dialect: Dialect,
    api: Api,
    stream: bool,
    status: int,
    kind: str,
    ending: Ending,
) -> None:
    world = world_of(dialect)
    world.server.troubles.append(Trouble(status, "Told by the provider.", {"Retry-After": "7"}))
    wire = world.open()
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match="Told by the provider") as raised:
        ask(wire, api, user(), stream=stream)
    library = anthropic if api == "messages" else openai
    assert isinstance(raised.value, getattr(library, kind))
    assert raised.value.response.headers["Retry-After"] == "7"
    assert wire.seen[0].got(world.server.sent[0].body)
    counts = world.client.close_case("case")
    assert (counts.requests, counts.turns, counts.last_ending) == (1, 0, ending)
    (line,) = world.log()
    assert (line["status"], line["ending"]) == (status, ending)


@pytest.mark.parametrize(
    ("dialect", "api", "code", "ending"),
    [
        (OPENROUTER, "chat", 502, "server_error"),
        (OPENROUTER, "chat", 429, "rate_limited"),
        (OPENAI, "chat", 500, "server_error"),
        (ANTHROPIC, "messages", 529, "rate_limited"),
        (ANTHROPIC, "messages", 500, "server_error"),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_an_error_inside_a_stream(
    world_of: Callable[[Dialect], World], dialect: Dialect, api: Api, code: int, ending: Ending
) -> None:
    world = world_of(dialect)
    world.server.troubles.append(Trouble(event=code, message="Told in the middle."))
    wire = world.open()
    with pytest.raises((openai.APIError, anthropic.APIStatusError), match="Told in the middle"):
        ask(wire, api, user(), stream=True)
    assert wire.seen[0].got(world.server.sent[0].body)
    counts = world.client.close_case("case")
    assert (counts.turns, counts.last_ending) == (0, ending)


@both_ways
@each_api
def test_a_connection_that_breaks_in_the_reply_breaks_for_the_claw(
    world_of: Callable[[Dialect], World], dialect: Dialect, api: Api, stream: bool
) -> None:
    world = world_of(dialect)
    world.server.troubles.append(Trouble(cut=150))
    wire = world.open()
    with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError, httpx2.TransportError)):
        ask(wire, api, user(), stream=stream)
    assert wire.seen[0].got(world.server.sent[0].body)
    counts = world.client.close_case("case")
    assert (counts.turns, counts.last_ending) == (0, "dropped")


@both_ways
@each_api
def test_a_connection_that_breaks_before_the_reply(
    world_of: Callable[[Dialect], World], dialect: Dialect, api: Api, stream: bool
) -> None:
    world = world_of(dialect)
    world.server.troubles.append(Trouble(cut=0))
    wire = world.open()
    with pytest.raises((openai.APIError, anthropic.APIError)):
        ask(wire, api, user(), stream=stream)
    counts = world.client.close_case("case")
    assert (counts.requests, counts.turns, counts.last_ending) == (1, 0, "dropped")


@both_ways
@each_api
def test_half_json_is_malformed(
    world_of: Callable[[Dialect], World], dialect: Dialect, api: Api, stream: bool
) -> None:
    world = world_of(dialect)
    world.server.troubles.append(Trouble(half=True))
    wire = world.open()
    with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own for what it can't read
        ask(wire, api, user(), stream=stream)
    assert wire.seen[0].got(world.server.sent[0].body)
    counts = world.client.close_case("case")
    assert (counts.turns, counts.last_ending) == (0, "malformed")


@pytest.mark.parametrize("dialect", [OPENAI, OPENROUTER, ANTHROPIC], ids=lambda dialect: dialect.name)
def test_an_abandoned_reply_is_counted(world_of: Callable[[Dialect], World], dialect: Dialect) -> None:
    world = world_of(dialect)
    left = threading.Event()
    world.server.before_piece = lambda number: number < 2 or left.wait(60)
    leave_in_the_middle(world.open(), dialect.apis[0])
    left.set()
    wait_for(lambda: world.client.counts("case").endings["client_gone"] == 1)
    counts = world.client.close_case("case")
    (charge,) = world.server.charges
    assert (counts.turns, counts.unknown_usage, counts.tokens.output) == (0, 0, charge.output)
    assert world.server.sent[0].complete


def test_a_claw_that_left_just_before_the_last_piece_lost_it(tmp_path: Path) -> None:
    """The loop has not seen yet that it left: nothing but the write itself tells."""
    path, lost = tmp_path / "s", []

    async def run() -> None:
        began, left = threading.Event(), threading.Event()

        async def handle(http: web.Request) -> web.StreamResponse:
            claw = Downstream(http)
            await claw.begin(200, CIMultiDict(), None)
            await claw.write(b"first")
            lost.append(claw.lost)
            began.set()
            left.wait(60)
            await claw.write(b"last")
            lost.append(claw.lost)
            return await claw.end()

        def leave() -> None:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                began.wait(60)
            left.set()

        app = web.Application()
        app.router.add_get("/", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, path).start()
        await asyncio.to_thread(leave)
        await runner.cleanup()

    asyncio.run(run())
    assert lost == [False, True]


def test_a_provider_that_cannot_be_reached(world_of: Callable[[Dialect], World], tmp_path: Path) -> None:
    with socket.socket() as bound:  # so that nobody else gets the port
        bound.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        started = relaying(world_of(OPENAI).server, tmp_path, base_url=gone)
        with started as world:
            with pytest.raises(openai.APIError):
                ask(world.open(), "chat", user(), stream=True)
            assert world.client.close_case("case").last_ending == "dropped"


def test_deepseek_gets_its_reasoning_back(world_of: Callable[[Dialect], World]) -> None:
    world = world_of(DEEPSEEK)
    wire = world.open()
    said = ask(wire, "chat", user(), stream=True)
    forgetful = answered("chat", said, "done")
    del forgetful[0]["reasoning_content"]
    with pytest.raises(openai.BadRequestError, match="reasoning_content"):
        ask(wire, "chat", user() + forgetful, stream=True)
    transforms = ("deepseek_reasoning_content",)
    with relaying(world.server, world.folder / "transformed", transforms=transforms) as helped:
        wire = helped.open()
        said = ask(wire, "chat", user(), stream=True)
        talk = answered("chat", said, "done")
        del talk[0]["reasoning_content"]
        assert ask(wire, "chat", user() + talk, stream=True).calls
