"""Rate limits, retries, waits and spend limits, through the gateway's own process."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import openai
import pytest
from support.dialects.clients import Wire
from support.dialects.delivery import Trouble
from support.dialects.profiles import ANTHROPIC, OPENAI
from support.dialects.server import MODEL, DialectServer
from support.relay_world import (
    COMMANDS,
    PATHS,
    PRICES,
    World,
    ask,
    converse,
    post,
    relaying,
    request_of,
    runs,
    socket_of,
    user,
)
from support.waiting import wait_for

AT_ONCE = {"Retry-After": "1"}


def test_rate_limits_and_overloads_are_retried_on_the_host(tmp_path: Path) -> None:
    with DialectServer(ANTHROPIC, runs(*COMMANDS)) as server, relaying(server, tmp_path, retries=3) as world:
        server.troubles.extend([Trouble(429, headers=AT_ONCE), Trouble(529, headers=AT_ONCE)])
        wire = world.open()
        assert ask(wire, "messages", user(), stream=True).calls
        assert [sent.status for sent in server.sent] == [429, 529, 200]
        assert len({received.body for received in server.received}) == 1
        assert [seen.status for seen in wire.seen] == [200]
        counts = world.client.close_case("case")
        assert (counts.requests, counts.turns, counts.retries, counts.last_ending) == (1, 1, 2, "ok")
        assert world.log()[0]["tries"] == 3


def test_a_wait_is_as_long_as_the_provider_asks_and_is_recorded(tmp_path: Path) -> None:
    with DialectServer(OPENAI, runs(*COMMANDS)) as server, relaying(server, tmp_path, retries=1) as world:
        server.troubles.append(Trouble(429, headers={"Retry-After": "1"}))
        ask(world.open(), "chat", user(), stream=False)
        counts = world.client.close_case("case")
        assert counts.waited >= 1
        assert world.log()[0]["waited"] >= 1


def test_after_the_last_try_the_claw_gets_the_error(tmp_path: Path) -> None:
    with DialectServer(OPENAI, runs(*COMMANDS)) as server, relaying(server, tmp_path, retries=2) as world:
        server.troubles.extend([Trouble(429, f"Number {number}.", AT_ONCE) for number in range(3)])
        with pytest.raises(openai.RateLimitError, match=r"Number 2\."):
            ask(world.open(), "chat", user(), stream=True)
        counts = world.client.close_case("case")
        assert (counts.requests, counts.retries, counts.last_ending) == (1, 2, "rate_limited")


def test_permanent_errors_are_not_retried(tmp_path: Path) -> None:
    with DialectServer(OPENAI, runs(*COMMANDS)) as server, relaying(server, tmp_path, retries=3) as world:
        wire = world.open()
        for status in (400, 401, 403, 500):
            server.troubles.append(Trouble(status, headers=AT_ONCE))
            with pytest.raises(openai.APIStatusError):
                ask(wire, "chat", user(), stream=False)
        assert len(server.received) == 4
        assert world.client.close_case("case").retries == 0


OF_THE_ACCOUNT: dict[str, tuple[int, dict[str, str], Any]] = {
    "Anthropic": (
        400,
        {},
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
            },
        },
    ),
    "DashScope": (
        400,
        {},
        {
            "error": {
                "code": "Arrearage",
                "type": "Arrearage",
                "message": "Access denied, please make sure your account",
            }
        },
    ),
    "Moonshot": (
        429,
        {},
        {"error": {"type": "exceeded_current_quota_error", "message": "Your account is suspended"}},
    ),
    "OpenAI": (429, {}, {"error": {"code": "insufficient_quota", "type": "insufficient_quota", "message": "You"}}),
    "DeepSeek": (402, {}, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}),
    "OpenRouter": (402, {}, {"error": {"code": 402, "message": "This request requires more credits"}}),
    "Zhipu": (429, {}, {"error": {"code": "1113", "message": "..."}}),
    "shut out": (429, {"Retry-After": "3600"}, {"error": {"message": "Rate limit reached"}}),
    "a wrong key": (401, {}, {"error": {"message": "Incorrect API key"}}),
}


@pytest.mark.parametrize("name", OF_THE_ACCOUNT)
def test_an_account_that_is_refused_is_not_the_claws_failure_and_stops_the_run(name: str, tmp_path: Path) -> None:
    status, headers, body = OF_THE_ACCOUNT[name]
    with DialectServer(OPENAI) as server, relaying(server, tmp_path, retries=3) as world:
        path = socket_of(world)
        server.canned.append(
            lambda _: (status, {"Content-Type": "application/json"} | headers, [json.dumps(body).encode()])
        )
        assert world.client.account_refusal() == ""
        assert post(path, PATHS["chat"], request_of("chat"))[0] == status
        assert f"HTTP {status}" in world.client.account_refusal()
        counts = world.client.counts("case")
        assert (counts.last_ending, counts.retries, len(server.received)) == ("unauthorized", 0, 1)
        assert post(path, PATHS["chat"], request_of("chat"))[0] == 200
        assert world.client.account_refusal() == ""


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            400,
            {
                "message": "Invalid 'tools[0].name': 'Your credit balance is too low'",
                "type": "invalid_request_error",
            },
        ),
        (400, {"message": "unknown tool: insufficient balance", "param": "Arrearage"}),
        (
            403,
            {
                "code": 403,
                "message": "Input was flagged",
                "metadata": {"reasons": ["x"], "flagged_input": "insufficient"},
            },
        ),
    ],
)
def test_what_a_claw_sent_cannot_pose_as_an_account_that_is_refused(
    status: int, error: dict[str, Any], tmp_path: Path
) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path) as world:
        path = socket_of(world)
        server.canned.append(
            lambda _: (status, {"Content-Type": "application/json"}, [json.dumps({"error": error}).encode()])
        )
        assert post(path, PATHS["chat"], request_of("chat"))[0] == status
        assert world.client.account_refusal() == ""
        assert world.client.counts("case").last_ending == "refused"


def test_requests_beyond_the_minutes_limit_are_held_back(tmp_path: Path) -> None:
    limit = {"requests_per_minute": 3}
    with DialectServer(OPENAI, runs(*COMMANDS)) as server, relaying(server, tmp_path, rate_limit=limit) as world:
        wires = [world.open(f"case-{number}") for number in range(2)]
        threads = [
            threading.Thread(target=_quietly, args=(wire,), daemon=True) for wire in (*wires, *wires, *wires)
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(server.received) == 3)
        wait_for(lambda: sum(_waiting(world, number) for number in range(2)) == 3)
        assert len(server.received) == 3
        counts = [world.client.close_case(f"case-{number}") for number in range(2)]
        assert sum(one.requests for one in counts) == 6
        # whose requests came first is chance
        assert sum(one.waited for one in counts) > 0
        # Closing takes none of the others' turns: what was held back has not been sent.
        assert len(server.received) == 3
        for thread in threads:
            thread.join(60)


def _quietly(wire: Wire) -> None:
    try:
        ask(wire, "chat", user(), stream=False)
    except openai.APIError:
        return


def _waiting(world: World, number: int) -> int:
    counts = world.client.counts(f"case-{number}")
    return counts.requests - sum(counts.endings.values())


@pytest.mark.parametrize("limit", ["spend_limit", "case_spend_limit"])
def test_at_a_spend_limit_no_request_is_sent(limit: str, tmp_path: Path) -> None:
    limits = {limit: Decimal("0.0001")}
    prices = {MODEL: PRICES}
    with (
        DialectServer(OPENAI, runs(*COMMANDS)) as server,
        relaying(server, tmp_path, limits=limits, prices=prices) as world,
    ):
        wire = world.open()
        # A prompt of some 400 bytes costs two thirds of it and more.
        with pytest.raises(openai.APIStatusError) as raised:
            converse(wire, "chat", stream=True, between=world.settle)
        assert raised.value.status_code == 402
        assert "limit" in str(raised.value)
        sent = len(server.received)
        assert 0 < sent < 3
        other = world.open("other")
        if limit == "spend_limit":
            with pytest.raises(openai.APIStatusError, match="limit"):
                ask(other, "chat", user(), stream=True)
        else:
            assert ask(other, "chat", user(), stream=True).calls
        assert world.client.cost_limit_reached() == (limit == "spend_limit")
        counts = world.client.close_case("case")
        assert (counts.endings["cost_limit"], counts.last_ending, counts.endings["ok"]) == (1, "cost_limit", sent)
        assert counts.cost.priced
        assert counts.cost.priced >= Decimal("0.0001")


def test_earlier_spending_of_the_run_counts(tmp_path: Path) -> None:
    limits = {"spend_limit": Decimal(1), "spent_before": Decimal(1)}
    with (
        DialectServer(OPENAI) as server,
        relaying(server, tmp_path, limits=limits, prices={MODEL: PRICES}) as world,
    ):
        with pytest.raises(openai.APIStatusError, match="limit"):
            ask(world.open(), "chat", user(), stream=True)
        assert not server.received
        assert world.client.close_case("case").last_ending == "cost_limit"


def test_replies_without_usage_count_against_the_limit(tmp_path: Path) -> None:
    limits = {"spend_limit": Decimal("0.001")}
    with (
        DialectServer(OPENAI, runs(*COMMANDS)) as server,
        relaying(server, tmp_path, limits=limits, prices={MODEL: PRICES}) as world,
    ):
        wire, unasked = world.open(), {"stream_options": {"include_usage": False}}
        with pytest.raises(openai.APIStatusError, match="limit"):  # noqa: PT012 - sooner or later
            for _ in range(50):
                ask(wire, "chat", user(), stream=True, **unasked)
        counts = world.client.close_case("case")
        assert counts.unknown_usage == counts.turns == len(server.received) > 0
        assert counts.cost.priced is None
        # a run that is gone on with begins with what its log has
        held = sum(Decimal(line["cost"]["held"]) for line in world.log() if line["replied"])
        assert limits["spend_limit"] <= held == counts.cost.held
        assert world.client.cost_limit_reached()
