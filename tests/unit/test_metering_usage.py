"""Each provider's usage shape as four disjoint classes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.case_models import Api, TokenCounts
from gateway.metering.reader import Metered, ReplyReader
from gateway.metering.reply_usage import UNKNOWN, usage_of

Usage = dict[str, Any]


@dataclass(frozen=True)
class Used:
    """What a request used, in truth."""

    input: int
    read: int
    write: int
    hour: int
    output: int
    reasoning: int

    @property
    def prompt(self) -> int:
        return self.input + self.read + self.write

    @property
    def chat(self) -> Usage:
        total = self.prompt + self.output
        return {"prompt_tokens": self.prompt, "completion_tokens": self.output, "total_tokens": total}


COUNTS = st.integers(0, 300_000)


@st.composite
def uses(draw: st.DrawFn) -> Used:
    write, output = draw(COUNTS), draw(COUNTS)
    hour, reasoning = draw(st.integers(0, write)), draw(st.integers(0, output))
    # every request has a prompt
    return Used(draw(st.integers(1, 10**6)), draw(COUNTS), write, hour, output, reasoning)


def openai_chat(used: Used) -> Usage:
    """openai.types.CompletionUsage"""
    details = {"cached_tokens": used.read, "cache_write_tokens": used.write, "audio_tokens": 0}
    return used.chat | {
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": used.reasoning, "audio_tokens": 0},
    }


def openai_responses(used: Used) -> Usage:
    """openai.types.responses.ResponseUsage"""
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": used.read, "cache_write_tokens": used.write},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.prompt + used.output,
    }


def anthropic(used: Used) -> Usage:
    """anthropic.types.Usage"""
    return {
        "input_tokens": used.input,
        "cache_read_input_tokens": used.read,
        "cache_creation_input_tokens": used.write,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.write - used.hour,
            "ephemeral_1h_input_tokens": used.hour,
        },
        "output_tokens": used.output,
        "output_tokens_details": {"thinking_tokens": used.reasoning},
        "server_tool_use": None,
        "service_tier": "standard",
    }


def openrouter(used: Used) -> Usage:
    """openrouter.ai/docs/use-cases/usage-accounting"""
    return openai_chat(used) | {"cost": 0.5, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}


def deepseek(used: Used) -> Usage:
    """api-docs.deepseek.com/api/create-chat-completion, .../guides/kv_cache"""
    return used.chat | {
        "prompt_cache_hit_tokens": used.read,
        "prompt_cache_miss_tokens": used.prompt - used.read,
        "prompt_tokens_details": {"cached_tokens": used.read},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }


def dashscope(used: Used) -> Usage:
    """help.aliyun.com/zh/model-studio/context-cache"""
    return used.chat | {
        "prompt_tokens_details": {
            "cached_tokens": used.read,
            "cache_creation_input_tokens": used.write,
            "cache_creation": {
                "ephemeral_5m_input_tokens": used.write - used.hour,
                "ephemeral_1h_input_tokens": used.hour,
            },
            "cache_type": "ephemeral",
        }
    }


def moonshot(used: Used) -> Usage:
    """platform.moonshot.ai/docs/api/chat"""
    return used.chat | {"cached_tokens": used.read}


def vllm(used: Used) -> Usage:
    """docs.vllm.ai/en/latest/serving/openai_compatible_server.html, without --enable-prompt-tokens-details"""
    return used.chat | {"prompt_tokens_details": None}


def litellm(used: Used) -> Usage:
    """docs.litellm.ai/docs/completion/prompt_caching"""
    return used.chat | {
        "prompt_tokens_details": {"cached_tokens": used.read, "text_tokens": None},
        "cache_read_input_tokens": used.read,
        "cache_creation_input_tokens": used.write,
    }


def xai(used: Used) -> Usage:
    """docs.x.ai/docs/guides/reasoning: reasoning is beside completion_tokens, and in total_tokens"""
    return used.chat | {
        "completion_tokens": used.output - used.reasoning,
        "prompt_tokens_details": {"cached_tokens": used.read, "text_tokens": used.prompt},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }


READ, WRITE, HOUR, REASONING = "cache_read", "cache_write", "cache_write_1h", "reasoning"
SHAPES: dict[Callable[[Used], Usage], tuple[Api, set[str]]] = {
    openai_chat: ("chat", {READ, WRITE, REASONING}),
    openai_responses: ("responses", {READ, WRITE, REASONING}),
    anthropic: ("messages", {READ, WRITE, HOUR, REASONING}),
    openrouter: ("chat", {READ, WRITE, REASONING}),
    deepseek: ("chat", {READ, REASONING}),
    dashscope: ("chat", {READ, WRITE, HOUR}),
    moonshot: ("chat", {READ}),
    vllm: ("chat", set()),
    litellm: ("chat", {READ, WRITE}),
    xai: ("chat", {READ, REASONING}),
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@given(used=uses())
def test_reported_counts_are_classified_and_others_unknown(shape: Callable[[Used], Usage], used: Used) -> None:
    api, told = SHAPES[shape]
    counts = usage_of(api, shape(used))
    values = {READ: used.read, WRITE: used.write, HOUR: used.hour, REASONING: used.reasoning}
    for name, value in values.items():
        assert getattr(counts, name) == (value if name in told else None)
    # what is not told apart is in the input
    hidden = sum(value for name, value in {READ: used.read, WRITE: used.write}.items() if name not in told)
    assert counts.input == used.input + hidden
    assert counts.output == used.output


@pytest.mark.parametrize(
    ("shape", "provider", "flavor"),
    [
        (openai_chat, "openai", "chat"),
        (openai_responses, "openai", "responses"),
        (anthropic, "anthropic", "default"),
        (openrouter, "openrouter", "chat"),
        (deepseek, "deepseek", "chat"),
        (xai, "x-ai", "chat"),
    ],
)
@given(used=uses())
def test_genai_prices_reads_the_same(
    shape: Callable[[Used], Usage], provider: str, flavor: str, used: Used
) -> None:
    counts = usage_of(SHAPES[shape][0], shape(used))
    theirs = genai_prices.extract_usage({"usage": shape(used)}, provider_id=provider, api_flavor=flavor).usage
    assert theirs.input_tokens == (counts.input or 0) + (counts.cache_read or 0) + (counts.cache_write or 0)
    assert theirs.cache_read_tokens == counts.cache_read
    if counts.cache_write is not None:
        assert theirs.cache_write_tokens == counts.cache_write
    assert theirs.output_tokens == counts.output
    assert theirs.output_reasoning_tokens == counts.reasoning


NO_COUNT = st.one_of(
    st.booleans(), st.integers(max_value=-1), st.floats(), st.text(max_size=3), st.just([]), st.just({})
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@given(data=st.data(), used=uses(), wrong=NO_COUNT)
def test_invalid_counts_are_unknown(
    shape: Callable[[Used], Usage], data: st.DataObject, used: Used, wrong: object
) -> None:
    api, _ = SHAPES[shape]
    usage = shape(used)
    name = data.draw(st.sampled_from([key for key in usage if key.endswith("tokens")]))
    before, counts = usage_of(api, usage), usage_of(api, usage | {name: wrong})
    if "cache" in name or (api == "messages" and name == "input_tokens"):
        assert counts == before.model_copy(update=dict.fromkeys(["input", READ, WRITE, HOUR]))
    else:
        assert counts == UNKNOWN


@given(
    used=uses(), wrong=NO_COUNT, name=st.sampled_from(["reasoning_tokens", "cached_tokens", "cache_write_tokens"])
)
def test_an_invalid_detail_makes_its_class_unknown(used: Used, wrong: object, name: str) -> None:
    usage = openai_chat(used)
    usage["completion_tokens_details" if name == "reasoning_tokens" else "prompt_tokens_details"][name] = wrong
    counts = usage_of("chat", usage)
    output = (None, None) if name == "reasoning_tokens" else (used.output, used.reasoning)
    assert (counts.output, counts.reasoning) == output
    assert (counts.input is None) == (name != "reasoning_tokens")


def metered(api: Api, *events: Usage, complete: bool = True) -> Metered:
    reader = ReplyReader(api, streaming=True)
    for event in events:
        reader.feed(f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode())
    return reader.finish(complete=complete)


TEXT = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
REAL = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}}
ZEROS = {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}


def test_zeros_are_not_believed_where_something_was_said() -> None:
    assert metered("chat", TEXT, ZEROS).usage is None
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": "stop"}]}
    thinking_alone = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 0}}
    assert getattr(metered("chat", thought, thinking_alone).usage, "output", 0) is None
    free = {"choices": [], "usage": ZEROS["usage"] | {"cost": 0}}
    assert metered("chat", TEXT, free).told_cost is None
    prompt_alone = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 0}}
    unknown = TokenCounts(input=20, cache_read=None, cache_write=None, output=None)
    assert metered("chat", TEXT, prompt_alone).usage == unknown
    # what was reported before is not taken back
    for events in ((TEXT, REAL, ZEROS), (REAL, TEXT, ZEROS)):
        assert metered("chat", *events).usage == TokenCounts(input=20, cache_read=None, cache_write=None, output=3)


def anthropic_stream(start: Usage, *deltas: Usage) -> list[Usage]:
    return [
        {"type": "message_start", "message": {"usage": start}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello."}},
        *({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage} for usage in deltas),
        *([{"type": "message_stop"}] if deltas else []),
    ]


def test_an_anthropic_stream_is_mended_by_its_later_counts_and_never_by_zeros() -> None:
    zero = {"input_tokens": 0, "output_tokens": 0}
    unknown = TokenCounts(input=None, cache_read=None, cache_write=None, output=None)
    assert metered("messages", *anthropic_stream(zero, zero)).usage is None
    mended = metered("messages", *anthropic_stream(zero, {"input_tokens": 20, "output_tokens": 3})).usage
    assert mended == unknown.model_copy(update={"input": 20, "output": 3})
    kept = metered("messages", *anthropic_stream({"input_tokens": 20}, {"output_tokens": 3}, zero)).usage
    assert kept == unknown.model_copy(update={"input": 20, "output": 3})
    # a stream that the claw left keeps what its start told
    left = metered(
        "messages", *anthropic_stream({"input_tokens": 20, "cache_read_input_tokens": 9}), complete=False
    )
    assert left.usage == unknown.model_copy(update={"input": 20, "cache_read": 9})


def test_a_surcharge_is_read_from_each_format() -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "service_tier": "priority"}
    reader = ReplyReader("chat", streaming=False)
    reader.feed(json.dumps(body | {"usage": REAL["usage"]}).encode())
    assert reader.finish(complete=True).surcharges == ("service tier priority",)
    fast = anthropic_stream({"input_tokens": 20}, {"output_tokens": 3, "speed": "fast"})
    assert metered("messages", *fast).surcharges == ("speed fast",)
    searched = {"type": "response.completed", "response": {"output": [{"type": "web_search_call"}], "usage": {}}}
    assert metered("responses", searched).surcharges == ("tools at the provider",)
    response = {"type": "response.completed", "response": {"service_tier": "flex", "output": [], "usage": {}}}
    assert metered("responses", response).surcharges == ("service tier flex",)
