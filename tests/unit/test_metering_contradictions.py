"""A usage that cannot be, and what of it stays known; and the cost that a provider tells."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from gateway.case_models import Api, TokenCounts
from gateway.metering.reply_usage import UNKNOWN, told_cost, usage_of

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


def test_a_total_that_is_not_the_sum_makes_everything_unknown() -> None:
    assert usage_of("chat", {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 9}) == UNKNOWN
    assert usage_of("responses", {"input_tokens": 5, "output_tokens": 3, "total_tokens": True}) == UNKNOWN


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
