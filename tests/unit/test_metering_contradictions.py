"""A usage that cannot be, and what of it stays known; and the cost that a provider tells."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from gateway.case_models import Api, TokenCounts
from gateway.metering.reply_usage import UNKNOWN, surcharges, told_cost, usage_of

Usage = dict[str, Any]

PROMPT_UNKNOWN = {"input": None, "cache_read": None, "cache_write": None}


@pytest.mark.parametrize(
    ("api", "usage"),
    [
        ("chat", {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 6}}),
        (
            "chat",
            {
                "prompt_tokens": 5,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 3},
            },
        ),
        (
            "chat",
            {
                "prompt_tokens": 5,
                "completion_tokens": 1,
                "prompt_cache_hit_tokens": 3,
                "prompt_cache_miss_tokens": 3,
            },
        ),
        (
            "chat",
            {
                "prompt_tokens": 5,
                "completion_tokens": 1,
                "cached_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 2},
            },
        ),
        ("responses", {"input_tokens": 5, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 6}}),
        (
            "messages",
            {
                "input_tokens": 5,
                "output_tokens": 1,
                "cache_creation_input_tokens": 3,
                "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 2},
            },
        ),
    ],
)
def test_a_prompt_that_contradicts_itself_is_unknown(api: Api, usage: Usage) -> None:
    assert usage_of(api, usage) == TokenCounts(**PROMPT_UNKNOWN, output=1)


def test_more_reasoning_than_output_is_unknown() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 4}}
    assert usage_of("chat", usage) == TokenCounts(input=5, cache_read=None, cache_write=None, output=None)


def test_a_total_below_the_sum_makes_everything_unknown() -> None:
    assert usage_of("chat", {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 7}) == UNKNOWN
    assert usage_of("responses", {"input_tokens": 5, "output_tokens": 3, "total_tokens": True}) == UNKNOWN


@pytest.mark.parametrize(("asked", "answered"), [("prompt", "completion"), ("input", "output")])
def test_what_only_the_total_shows_is_output(asked: str, answered: str) -> None:
    """Thinking that is charged and that no count names."""
    api: Api = "chat" if asked == "prompt" else "responses"
    usage: Usage = {f"{asked}_tokens": 20, f"{answered}_tokens": 198, "total_tokens": 30218}
    assert usage_of(api, usage) == TokenCounts(input=20, cache_read=None, cache_write=None, output=30198)
    usage[f"{answered}_tokens_details"] = {"reasoning_tokens": 30000}
    assert usage_of(api, usage) == TokenCounts(
        input=20, cache_read=None, cache_write=None, output=30198, reasoning=30000
    )


def test_what_only_the_total_shows_is_output_in_messages_too() -> None:
    """There the cache is beside the input, and part of the prompt."""
    usage: Usage = {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 198, "total_tokens": 30298}
    assert usage_of("messages", usage) == TokenCounts(input=20, cache_read=80, cache_write=None, output=30198)


def test_a_total_that_is_larger_by_the_cache_is_unclear() -> None:
    usage: Usage = {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 718, "cached_tokens": 10}
    assert usage_of("chat", usage).output == 698
    assert usage_of("chat", usage | {"total_tokens": 228}) == UNKNOWN


def test_a_prompt_of_nothing_is_not_believed() -> None:
    assert usage_of("chat", {"prompt_tokens": 0, "completion_tokens": 3, "total_tokens": 3}).input is None
    assert usage_of("messages", {"input_tokens": 0, "output_tokens": 3}).input is None
    cached: Usage = {"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 3}
    assert usage_of("messages", cached).input == 0


def test_compaction_is_charged_beside_the_top_level_counts() -> None:
    usage: Usage = {
        "input_tokens": 23000,
        "output_tokens": 1000,
        "iterations": [
            {"type": "compaction", "input_tokens": 180000, "output_tokens": 3500, "cache_read_input_tokens": 7},
            {"type": "message", "input_tokens": 23000, "output_tokens": 1000},
        ],
    }
    assert usage_of("messages", usage) == TokenCounts(input=203000, cache_read=7, cache_write=None, output=4500)
    # the work of another model has another price, and without the reply's own counts something is missing
    other = {"type": "advisor_message", "input_tokens": 5000, "output_tokens": 900}
    assert usage_of("messages", usage | {"iterations": [*usage["iterations"], other]}) == UNKNOWN
    assert usage_of("messages", usage | {"iterations": usage["iterations"][:1]}) == UNKNOWN
    del usage["iterations"][0]["output_tokens"]
    assert usage_of("messages", usage) == UNKNOWN


@pytest.mark.parametrize(
    ("usage", "tier", "told"),
    [
        ({"service_tier": "standard", "inference_geo": "not_available", "speed": "standard"}, "default", ()),
        ({}, None, ()),
        ({"service_tier": "priority"}, None, ("service tier priority",)),
        ({}, "flex", ("service tier flex",)),
        ({"num_search_queries": 3}, None, ("3 num_search_queries",)),
        ({"speed": "fast", "inference_geo": "us"}, None, ("speed fast", "region us")),
        (
            {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}},
            None,
            ("2 web_search_requests",),
        ),
    ],
)
def test_what_the_price_table_does_not_cover_is_named(usage: Usage, tier: object, told: tuple[str, ...]) -> None:
    assert surcharges(usage, tier) == told


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("usage", [{}, {"seconds": 3}, {"prompt_tokens": None, "input_tokens": None}])
def test_an_empty_usage_is_unknown(api: Api, usage: Usage) -> None:
    assert usage_of(api, usage) == UNKNOWN


def test_cache_writes_reported_only_by_their_parts() -> None:
    parts = {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3}
    counts = usage_of("messages", {"input_tokens": 1, "output_tokens": 1, "cache_creation": parts})
    assert (counts.cache_write, counts.cache_write_1h) == (5, 3)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.95}, Decimal("0.95")),
        ({"cost": 0}, Decimal(0)),
        ({"cost": 1.1e-07}, Decimal("1.1E-7")),
        # not one's own key: the upstream's cost is told, and was charged within `cost`
        ({"cost": 0.2, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.2}}, Decimal("0.2")),
        ({"cost": 0.95, "is_byok": True, "cost_details": {"upstream_inference_cost": 19}}, Decimal("19.95")),
        ({"cost": 0.95, "is_byok": True}, None),
        ({}, None),
        ({"cost": None}, None),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({"cost": "0.1"}, None),
        ({"cost": float("nan")}, None),
        ({"cost": float("inf")}, None),
    ],
)
def test_the_reported_cost(usage: Usage, cost: Decimal | None) -> None:
    assert told_cost(usage) == cost
