"""Spend limits: what is reserved before a request is sent, what is held after it, and how far a limit is exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects.profiles import OPENAI
from support.dialects.server import MODEL, DialectServer
from support.relay_world import PATHS, post, relaying, request_of, socket_of

from gateway.case_models import Api, TokenCounts
from gateway.metering.prices import Period, PriceTable, Rates
from gateway.metering.reply_usage import surcharges, usage_of
from gateway.spend import OUTPUT_TOKENS, Reservation, Spending, output_limit

NOW = datetime(2026, 12, 1, tzinfo=UTC)
RATES = Rates(
    input=Decimal(3),
    cache_read=Decimal("0.3"),
    cache_write=Decimal("3.75"),
    cache_write_1h=Decimal(6),
    output=Decimal(15),
)
TABLE = PriceTable(provider="acme", model="big", source="test", periods=(Period(tiers=(RATES,)),))
"""Dollars per million tokens."""

PAYLOADS: list[tuple[Api, dict[str, Any], str | None]] = [
    # 1,000 * 3 + 500 * 15 = 10,500 millionths
    (
        "chat",
        {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500, "cached_tokens": 0},
        "0.0105",
    ),
    # 200 * 3 + 800 * 0.3 + 500 * 15 = 600 + 240 + 7,500
    (
        "chat",
        {"prompt_tokens": 1000, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 800}},
        "0.00834",
    ),
    # the total shows 30,000 tokens of thinking: 20 * 3 + 30,198 * 15 = 60 + 452,970
    (
        "chat",
        {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 30218, "prompt_cache_hit_tokens": 0},
        "0.45303",
    ),
    # DeepSeek: 100 missed * 3 + 900 hit * 0.3 + 10 * 15 = 300 + 270 + 150
    (
        "chat",
        {
            "prompt_tokens": 1000,
            "prompt_cache_hit_tokens": 900,
            "prompt_cache_miss_tokens": 100,
            "completion_tokens": 10,
        },
        "0.00072",
    ),
    # Anthropic, 5 minutes: 50 * 3 + 10,000 * 0.3 + 2,000 * 3.75 + 300 * 15 = 150 + 3,000 + 7,500 + 4,500
    (
        "messages",
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 10000,
            "cache_creation_input_tokens": 2000,
            "output_tokens": 300,
        },
        "0.01515",
    ),
    # Anthropic, 500 of the 2,000 for an hour: 150 + 1,500 * 3.75 + 500 * 6 + 4,500 = 150 + 5,625 + 3,000 + 4,500
    (
        "messages",
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 2000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1500, "ephemeral_1h_input_tokens": 500},
            "output_tokens": 300,
        },
        "0.013275",
    ),
    # Anthropic, compaction: (180,000 + 23,000) * 3 + (3,500 + 1,000) * 15 = 609,000 + 67,500
    (
        "messages",
        {
            "input_tokens": 23000,
            "output_tokens": 1000,
            "cache_read_input_tokens": 0,
            "iterations": [
                {
                    "type": "compaction",
                    "input_tokens": 180000,
                    "output_tokens": 3500,
                    "cache_read_input_tokens": 0,
                },
                {"type": "message", "input_tokens": 23000, "output_tokens": 1000, "cache_read_input_tokens": 0},
            ],
        },
        "0.6765",
    ),
    # LiteLLM: 400 * 3 + 100 * 0.3 + 500 for an hour * 6 + 20 * 15 = 1,200 + 30 + 3,000 + 300
    (
        "chat",
        {
            "prompt_tokens": 1000,
            "completion_tokens": 20,
            "total_tokens": 1020,
            "prompt_tokens_details": {
                "cached_tokens": 100,
                "cache_creation_tokens": 500,
                "cache_creation_token_details": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 500},
            },
        },
        "0.00453",
    ),
    # a responses request: 700 * 3 + 300 * 0.3 + 100 * 15 = 2,100 + 90 + 1,500
    (
        "responses",
        {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 300},
            "output_tokens": 100,
            "output_tokens_details": {"reasoning_tokens": 60},
            "total_tokens": 1100,
        },
        "0.00369",
    ),
    # nothing is known of what was charged
    ("chat", {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
]


@pytest.mark.parametrize(("api", "usage", "dollars"), PAYLOADS)
def test_a_payload_is_priced_to_the_cent(api: Api, usage: dict[str, Any], dollars: str | None) -> None:
    assert surcharges(usage, None) == ()
    assert TABLE.price(usage_of(api, usage), NOW) == (None if dollars is None else Decimal(dollars))


@pytest.mark.parametrize(
    ("request_", "tokens"),
    [
        ({}, OUTPUT_TOKENS),
        ({"max_tokens": 100}, 100),
        ({"max_completion_tokens": 100, "max_tokens": 200}, 100),
        ({"max_output_tokens": 7, "n": 3}, 21),
        ({"max_tokens": True, "n": "3"}, OUTPUT_TOKENS),
        ({"max_tokens": -1}, OUTPUT_TOKENS),
    ],
)
def test_the_most_that_a_reply_may_have(request_: dict[str, Any], tokens: int) -> None:
    assert output_limit(request_) == tokens


async def served(spending: Spending, requests: Sequence[tuple[str, int, int]]) -> list[Decimal]:
    """Send all requests at once: whose, the most tokens of the reply, and those that it has."""
    paid: list[Decimal] = []

    async def send(case_id: str, most: int, output: int) -> None:
        made = await spending.reserve(case_id, {"max_tokens": most}, 300, NOW)
        if not isinstance(made, Reservation):
            return
        await asyncio.sleep(0)  # others are sent meanwhile
        usage = TokenCounts(input=100, cache_read=0, output=output)
        known = [price] if (price := spending.price(usage, NOW)) is not None else []
        paid.append(spending.add(made, known=known, usage=usage, received=1, when=NOW) or Decimal(0))

    await asyncio.gather(*(send(*request) for request in requests))
    return paid


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9000), st.integers(1, 9000)), max_size=64))
def test_a_limit_is_exceeded_by_one_request_at_most(requests: list[tuple[str, int, int]]) -> None:
    """As no reply has more tokens than its request allows."""
    asked = [(case, max(most, output), output) for case, most, output in requests]
    limit = Decimal("0.3")
    spending = Spending(TABLE, run_limit=limit)
    paid = asyncio.run(served(spending, asked))
    assert spending.spent == sum(paid)
    assert spending.spent < limit + max(paid, default=Decimal(0))
    # nothing is refused for a reservation alone: every request was sent unless the limit was reached
    assert len(paid) == len(requests) or spending.spent >= limit


def test_sixty_four_requests_at_once_stay_within_the_limit() -> None:
    """Each costs 0.0153; 0.1 is reached by the seventh."""
    spending = Spending(TABLE, case_limit=Decimal("0.1"))
    paid = asyncio.run(served(spending, [("a", 1000, 1000)] * 64))
    assert len(paid) == 7
    assert spending.refusal("a")
    assert not spending.refusal("b")


def test_a_reply_whose_usage_is_unknown_holds_the_most_that_it_may_cost() -> None:
    spending = Spending(TABLE, run_limit=Decimal(1))

    async def held(usage: TokenCounts | None, *, surcharge: bool = False) -> Decimal | None:
        made = await spending.reserve("a", {"max_tokens": 1000}, 3000, NOW)
        assert isinstance(made, Reservation)
        return spending.add(made, known=[], usage=usage, received=30, when=NOW, has_surcharge=surcharge)

    most = Decimal("0.021")  # 1,000 to the cache for an hour at 6, and 1,000 at 15
    assert asyncio.run(held(None)) == most
    assert asyncio.run(held(TokenCounts(input=None, cache_read=None, cache_write=None, output=None))) == most
    assert asyncio.run(held(TokenCounts(input=100, cache_read=0, cache_write=0, output=None))) == Decimal("0.0156")
    assert asyncio.run(held(None, surcharge=True)) == 6 * most


def test_at_once_through_the_gateway(tmp_path: Path) -> None:
    """64 requests at once, of which each may cost 0.9 of the limit: they go one after the other."""
    rates = {MODEL: {"input": 0, "output": 10}}
    with (
        DialectServer(OPENAI) as server,
        relaying(server, tmp_path, limits={"spend_limit": Decimal("0.01")}, prices=rates) as world,
    ):
        path, request = socket_of(world), request_of("chat", max_tokens=900)
        with ThreadPoolExecutor(64) as pool:
            statuses = [status for status, _ in pool.map(lambda _: post(path, PATHS["chat"], request), range(64))]
        counts = world.client.close_case("case")
    assert set(statuses) <= {200, 402}
    assert counts.cost.held is not None
    most = max(Decimal(line["cost"]["held"]) for line in world.log() if line["replied"])
    assert counts.cost.held < Decimal("0.01") + most
    assert counts.endings["cost_limit"] == statuses.count(402)
