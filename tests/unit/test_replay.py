"""A case that was recorded is replayed: the same bytes and counts, free of cost, and differences are reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from support.dialects.clients import Wire, ask_chat, openai_client
from support.dialects.delivery import Delivery, Trouble
from support.dialects.profiles import ANTHROPIC, DEEPSEEK, OPENAI, OPENROUTER, VLLM, Dialect
from support.dialects.server import MODEL, DialectServer
from support.relay_world import COMMANDS, ask, converse, relaying, runs, user
from support.waiting import wait_for

from gateway.case_models import Api, CaseCounts, CaseSpec
from gateway.client import Gateway, GatewayClient

PATCH = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
ODD = Delivery(sizes=(1, 2, 3, 5, 7), alive=True)


BROKEN = (openai.APIConnectionError, httpx2.TransportError)
"""What a client library raises where a reply breaks off."""


class Replays:
    """A gateway without a provider."""

    def __init__(self, gateway: Gateway, folder: Path) -> None:
        self.client = GatewayClient(gateway.control)
        self.folder = folder

    def open(self, case_id: str = "case", **spec: Any) -> Wire:
        with suppress(LookupError):  # of an earlier one, a line may be still to come
            self.client.close_case(case_id)
        log = self.folder / f"{case_id}.requests"
        log.unlink(missing_ok=True)
        given = {"model": "replay:recorded", "request_log": log} | spec
        return Wire(self.client.open_case(CaseSpec(case_id=case_id, **given)))

    def log(self, case_id: str = "case") -> list[dict[str, Any]]:
        path = self.folder / f"{case_id}.requests"

        def lines() -> list[dict[str, Any]]:
            return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

        with suppress(LookupError):  # closed: nothing comes any more
            begun = self.client.counts(case_id).requests
            wait_for(lambda: sum(line["method"] == "POST" for line in lines()) >= begun)
        return lines()


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replays]:
    folder = tmp_path_factory.mktemp("replaying")
    with Gateway.start(folder) as gateway:
        yield Replays(gateway, folder)


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "case.jsonl"


def answers(wire: Wire) -> list[tuple[int, str | None, bytes]]:
    return [(seen.status, seen.answered.get("content-type"), bytes(seen.body)) for seen in wire.seen]


def told(counts: CaseCounts) -> dict[str, Any]:
    """Counts without what is of time and money."""
    return counts.model_dump(exclude={"cost", "upstream_seconds", "waited", "retries"})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_scripted_case_is_replayed_as_it_was(replays: Replays, cassette: Path, stream: bool) -> None:
    wire = replays.open(model="scripted:oracle", gold_patch=PATCH, cassette=cassette)
    commands = converse(wire, "chat", stream=stream)
    counts = replays.client.close_case("case")
    recorded = cassette.read_bytes()
    for number in range(2):
        again = replays.open(f"again-{number}", replayed=cassette)
        assert converse(again, "chat", stream=stream) == commands
        assert answers(again) == answers(wire)
        assert told(replays.client.close_case(f"again-{number}")) == told(counts)
    assert cassette.read_bytes() == recorded


TALK = [
    (OPENAI, "chat"),
    (OPENAI, "responses"),
    (ANTHROPIC, "messages"),
    (DEEPSEEK, "chat"),
    (OPENROUTER, "chat"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("dialect", "api"), TALK, ids=[f"{dialect.name}-{api}" for dialect, api in TALK])
def test_a_paid_session_is_replayed_without_its_provider(
    replays: Replays, tmp_path: Path, dialect: Dialect, api: Api, stream: bool
) -> None:
    cassette = tmp_path / "case.jsonl"
    with (
        DialectServer(dialect, runs(*COMMANDS), delivery=ODD) as server,
        relaying(server, tmp_path / "paid") as world,
    ):
        wire = world.open(cassette=cassette)
        assert converse(wire, api, stream=stream) == list(COMMANDS)
        counts = world.client.close_case("case")
    again = replays.open(replayed=cassette)
    assert converse(again, api, stream=stream) == list(COMMANDS)
    assert told(replays.client.close_case("case")) == told(counts)
    assert [line["ending"] for line in replays.log()] == ["ok"] * len(replays.log())


def test_a_replay_needs_no_transforms(replays: Replays, cassette: Path, tmp_path: Path) -> None:
    with (
        DialectServer(DEEPSEEK, runs(*COMMANDS)) as server,
        relaying(server, tmp_path / "paid", transforms=("deepseek_reasoning_content",)) as world,
    ):
        wire = world.open(cassette=cassette)
        assert converse(wire, "chat", stream=True) == list(COMMANDS)
        world.client.close_case("case")
    again = replays.open(replayed=cassette)
    assert converse(again, "chat", stream=True) == list(COMMANDS)
    assert answers(again) == answers(wire)


def test_no_key_is_in_the_cassette(replays: Replays, cassette: Path, tmp_path: Path) -> None:
    everywhere = Trouble(echo=frozenset({"header", "body"}))
    with DialectServer(VLLM) as server, relaying(server, tmp_path / "paid") as world:
        server.troubles.extend([everywhere, Trouble(400, echo=frozenset({"error"}))])
        wire = world.open(cassette=cassette)
        client = openai_client(wire, key=server.key)
        ask_chat(client, MODEL, user(f"is {server.key} your key?"), stream=True)
        world.settle()
        with pytest.raises(openai.BadRequestError):
            ask_chat(client, MODEL, user("is it?"), stream=True)
        world.client.close_case("case")
        assert server.key not in cassette.read_text()
        asked, refused = cassette.read_text().splitlines()
        assert "*" * len(server.key) in asked
        assert "The key was ****" in refused


def test_a_changed_prompt_is_refused_and_the_difference_logged(replays: Replays, cassette: Path) -> None:
    wire = replays.open(model="scripted:oracle", gold_patch=PATCH, cassette=cassette)
    ask(wire, "chat", user("fix the bug in the parser"), stream=True)
    again = replays.open("again", replayed=cassette)
    with pytest.raises(openai.BadRequestError, match="Replay: this request is not in the cassette") as raised:
        ask(again, "chat", user("fix the bug in the lexer"), stream=True)
    assert raised.value.code == "not_in_cassette"
    (line,) = replays.log("again")
    assert (line["status"], line["ending"]) == (400, "refused")
    assert "messages[0].content, character 20: recorded was 'fix the bug in the parser'" in line["error"]
    assert "sent was 'fix the bug in the lexer'" in line["error"]
    counts = replays.client.close_case("again")
    assert (counts.requests, counts.turns, counts.endings["refused"]) == (1, 0, 1)
    assert counts.replay_diff
    assert line["error"] == f"Replay: {counts.replay_diff}"


def test_other_tools_are_a_difference(replays: Replays, cassette: Path) -> None:
    wire = replays.open(model="scripted:oracle", gold_patch=PATCH, cassette=cassette)
    ask(wire, "chat", user(), stream=True)
    again = replays.open("again", replayed=cassette)
    with pytest.raises(openai.BadRequestError, match=r"at tools\[0\], which is missing"):
        ask(again, "chat", user(), stream=True, tools=[])


def test_errors_and_their_waits_are_replayed(replays: Replays, cassette: Path, tmp_path: Path) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path / "paid") as world:
        server.troubles.extend([Trouble(429, headers={"Retry-After": "1"}), Trouble(500), Trouble(event=500)])
        wire = world.open(cassette=cassette)
        for kind in (openai.RateLimitError, openai.InternalServerError, openai.APIError):
            with pytest.raises(kind):
                ask(wire, "chat", user(), stream=True)
        counts = world.client.close_case("case")
    again = replays.open(replayed=cassette)
    for kind in (openai.RateLimitError, openai.InternalServerError, openai.APIError):
        with pytest.raises(kind):
            ask(again, "chat", user(), stream=True)
    assert again.seen[0].answered["retry-after"] == "1"
    replayed = replays.client.close_case("case")
    assert (replayed.endings, replayed.last_ending) == (counts.endings, counts.last_ending)
    assert [line["ending"] for line in replays.log()] == ["rate_limited", "server_error", "server_error"]


def test_a_reply_that_broke_off_breaks_off_again(replays: Replays, cassette: Path, tmp_path: Path) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path / "paid") as world:
        server.troubles.append(Trouble(cut=300))
        wire = world.open(cassette=cassette)
        with pytest.raises(BROKEN):
            ask(wire, "chat", user(), stream=True)
        world.client.close_case("case")
    again = replays.open(replayed=cassette)
    with pytest.raises(BROKEN):
        ask(again, "chat", user(), stream=True)
    assert answers(again) == answers(wire)
    assert replays.client.close_case("case").endings["dropped"] == 1


def test_a_case_without_a_cassette_is_not_opened(replays: Replays, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no cassette is given for case"):
        replays.open()
    with pytest.raises(ValueError, match="No such file"):
        replays.open(replayed=tmp_path / "none.jsonl")
    (tmp_path / "odd.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="line 1 does not belong to a cassette"):
        replays.open(replayed=tmp_path / "odd.jsonl")


def test_the_tool_filter_is_counted_as_when_it_was_recorded(replays: Replays, cassette: Path) -> None:
    wire = replays.open(model="scripted:oracle", gold_patch=PATCH, cassette=cassette, allowed_tools=("shell",))
    ask(wire, "chat", user(), stream=True)
    counts = replays.client.close_case("case")
    ask(replays.open("again", replayed=cassette, allowed_tools=("shell",)), "chat", user(), stream=True)
    replayed = replays.client.close_case("again")
    assert replayed.removed_tools == counts.removed_tools == ["exec"]
    assert replayed.tool_surface == []


def test_models_are_listed_and_other_addresses_refused(replays: Replays, cassette: Path) -> None:
    ask(replays.open(model="scripted:noop", cassette=cassette), "chat", user(), stream=True)
    client = openai_client(replays.open("again", replayed=cassette))
    assert [model.id for model in client.models.list()] == [MODEL]
    with pytest.raises(openai.NotFoundError, match="There is nothing at"):
        client.embeddings.create(model=MODEL, input="x")
