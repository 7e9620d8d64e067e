"""The provider's key, told back wherever a provider can, reaches neither the claw nor any file."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from urllib.parse import quote

import anthropic
import openai
import pytest
from support.dialects.clients import Wire
from support.dialects.delivery import Delivery, Trouble
from support.dialects.profiles import ANTHROPIC, OPENAI, OPENROUTER, Dialect
from support.dialects.server import KEY, MODEL, DialectServer
from support.relay_world import COMMANDS, PRICES, World, ask, relaying, runs, user
from support.waiting import wait_for

from gateway.case_models import Api

EVERYWHERE = frozenset({"header", "body", "error"})
HARD = "sk-a/b+c\"d'e\\f-0123456789"
"""A key with characters that JSON, addresses and shells write in other ways."""


def forms(key: str) -> list[str]:
    return [key, json.dumps(key)[1:-1], quote(key, safe=""), quote(key), base64.b64encode(key.encode()).decode()]


def check_nowhere(world: World, wire: Wire, key: str) -> None:
    """No file of the gateway's and nothing that came to the claw holds the key."""
    heads = [value for one in wire.seen for value in one.answered.values()]
    seen = "\n".join([*heads, *(bytes(one.body).decode("utf-8", "replace") for one in wire.seen)])
    counts = world.client.close_case("case").model_dump_json()
    for form in forms(key):
        assert form not in seen
        assert form not in counts
        assert form not in world.everything()


@pytest.mark.parametrize("key", [KEY, HARD], ids=["plain", "hard"])
@pytest.mark.parametrize(
    ("dialect", "api"),
    [(OPENAI, "chat"), (OPENAI, "responses"), (ANTHROPIC, "messages"), (OPENROUTER, "chat")],
    ids=lambda value: getattr(value, "name", value),
)
def test_an_echoed_key_stays_here(dialect: Dialect, api: Api, key: str, tmp_path: Path) -> None:
    """However replies are cut up: at each event, at each byte, and oddly."""
    with DialectServer(dialect, key=key) as server, relaying(server, tmp_path) as world:
        for cuts, sizes in {"events": (), "bytes": (1,), "odd": (5, 2)}.items():
            server.reset(runs(*COMMANDS), delivery=Delivery(sizes=sizes))
            cassette = tmp_path / cuts / "cassette.jsonl"
            wire = world.open(request_bodies=tmp_path / cuts / "bodies", cassette=cassette)
            ask_for_echoes(wire, api, server)
            assert all(key in "".join(dict(received.headers).values()) for received in server.received)
            wait_for(lambda path=cassette: len(path.read_text().splitlines()) == len(server.received))
            check_nowhere(world, wire, key)


def ask_for_echoes(wire: Wire, api: Api, server: DialectServer) -> None:
    """One reply of each kind that a provider can tell the key in."""
    server.troubles.append(Trouble(echo=EVERYWHERE))
    ask(wire, api, user(), stream=False)
    for status in (400, 401, 429, 500):
        server.troubles.append(
            Trouble(status, f"Refused for {server.key}.", {"X-Key": server.key}, echo=EVERYWHERE)
        )
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)):
            ask(wire, api, user(), stream=True)
    server.troubles.append(Trouble(event=500, message=f"Broken for {server.key}.", echo=EVERYWHERE))
    # A stream of the responses API that ends in an error is none that its library can read.
    with pytest.raises((openai.APIError, anthropic.APIError, RuntimeError)):
        ask(wire, api, user(), stream=True)


def test_a_compressed_reply_is_not_passed_on(tmp_path: Path) -> None:
    """Nobody looked into it for keys; it is paid for, so limits count it."""
    prices = {MODEL: PRICES}
    with DialectServer(OPENAI) as server, relaying(server, tmp_path, prices=prices) as world:
        told = gzip.compress(f'{{"choices": [{{"message": {{"content": "{KEY}"}}}}]}}'.encode())
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        server.canned.extend([lambda _: (200, headers, [told]), lambda _: (400, headers, [told])])
        wire = world.open(cassette=tmp_path / "cassette.jsonl")
        with pytest.raises(openai.InternalServerError, match="compressed its reply"):
            ask(wire, "chat", user(), stream=True, extra_headers={"Accept-Encoding": "gzip"})
        with pytest.raises(openai.BadRequestError):
            ask(wire, "chat", user(), stream=True)
        assert [dict(received.headers)["Accept-Encoding"] for received in server.received] == ["identity"] * 2
        assert all(told not in bytes(seen.body) for seen in wire.seen)
        counts = world.client.counts("case")
        # a compressed error says nothing of the request, so it is the provider's fault as well
        assert (counts.turns, counts.unknown_usage, counts.endings["malformed"]) == (0, 1, 2)
        assert counts.cost.held
        check_nowhere(world, wire, KEY)


def test_a_claws_own_credentials_do_not_leave(tmp_path: Path) -> None:
    with DialectServer(ANTHROPIC, runs(*COMMANDS)) as server, relaying(server, tmp_path) as world:
        wire = world.open()
        own = {"X-Api-Key": "the-claws-own", "Cookie": "the-claws-own", "Authorization": "Bearer the-claws-own"}
        ask(wire, "messages", user(), stream=True, extra_headers=own, extra_query={"key": "the-claws-own"})
        received = server.received[0]
        assert "the-claws-own" not in f"{received.headers}{received.target}"
        assert "the-claws-own" not in world.everything()


@pytest.mark.parametrize("key", [KEY, HARD], ids=["plain", "hard"])
def test_a_key_in_a_request_is_written_nowhere(key: str, tmp_path: Path) -> None:
    with DialectServer(OPENAI, runs(*COMMANDS), key=key) as server, relaying(server, tmp_path) as world:
        wire = world.open(request_bodies=tmp_path / "bodies", cassette=tmp_path / "cassette.jsonl")
        told = {"extra_query": {"key": key}, "extra_headers": {"X-Mine": key}, "user": key}
        ask(wire, "chat", user(f"The key is {key}."), stream=True, **told)
        assert list((tmp_path / "bodies").iterdir())
        wire.seen.clear()
        check_nowhere(world, wire, key)


def test_the_key_is_in_no_argument_and_no_environment(tmp_path: Path) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path) as world:
        process = Path("/proc") / str(world.gateway._process.pid)
        for name in ("cmdline", "environ"):
            assert KEY.encode() not in (process / name).read_bytes()
        assert KEY not in world.everything()
