"""What one reply is charged: counted here, told in each provider's own shape.

The counting follows the providers' documents: automatic prefix caches (OpenAI, OpenRouter, DeepSeek) and caches
that a request marks with `cache_control` (Anthropic, DashScope).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gateway.case_models import Api
from gateway.tokens import PromptCache, count

LOOKBACK = 20
"""How many blocks before a marker are looked at for a hit: Anthropic's and DashScope's documents say 20."""
LEAST = 1024
"""The fewest tokens that a marked cache keeps."""


@dataclass(frozen=True)
class Charge:
    """Tokens in classes that do not overlap, and what they cost in USD (None: the provider does not tell)."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int = 0
    cost: Decimal | None = None

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


Measure = Callable[[Mapping[str, Any]], tuple[int, int, int]]
"""A request's prompt tokens: (not cached, read from the cache, written to it)."""


class AutomaticCache:
    """Every prefix that was seen is a hit; writing costs nothing and is not told."""

    def __init__(self) -> None:
        self._cache = PromptCache()

    def measure(self, request: Mapping[str, Any]) -> tuple[int, int, int]:
        total, cached = self._cache.measure(request.get("tools"), _messages(request))
        return total - cached, cached, 0


class NoCache:
    """Nothing is kept, or nothing is told of it."""

    def measure(self, request: Mapping[str, Any]) -> tuple[int, int, int]:
        return PromptCache().measure(request.get("tools"), _messages(request))[0], 0, 0


class MarkedCache:
    """What a request marks with `cache_control` is kept, from its start to each marker.

    An assistant message with an empty text ends what can be kept.
    """

    def __init__(self, least: int = LEAST) -> None:
        self._least = least
        self._kept: set[bytes] = set()

    def measure(self, request: Mapping[str, Any]) -> tuple[int, int, int]:
        total, prefix, ends, marks, usable = 0, b"", [], [], True
        for block in _blocks(request):
            plain = json.dumps(_without_markers(block), sort_keys=True)
            total += count(plain)
            prefix = hashlib.sha256(prefix + plain.encode()).digest()
            usable = usable and not _is_empty_answer(block)
            ends.append((prefix, total if usable else 0))
            if "cache_control" in json.dumps(block) and usable and total >= self._least:
                marks.append(len(ends) - 1)
        reach = {place for mark in marks for place in range(max(0, mark - LOOKBACK), mark + 1)}
        read = max((ends[place][1] for place in reach if ends[place][0] in self._kept), default=0)
        written = max(0, max((ends[mark][1] for mark in marks), default=0) - read)
        self._kept |= {ends[mark][0] for mark in marks}
        return total - read - written, read, written


def _messages(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    head = [{"system": request[key]} for key in ("system", "instructions") if request.get(key)]
    body = request.get("messages") or request.get("input") or []
    return [*head, *([{"input": body}] if isinstance(body, str) else body)]


def _blocks(request: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The prompt's blocks in the order in which providers cache them: tools, system, messages."""
    for tool in request.get("tools") or []:
        yield {"tool": tool}
    for message in _messages(request):
        key = "system" if "system" in message else "content"
        content = message.get(key)
        rest = {name: value for name, value in message.items() if name != key}
        parts = content if isinstance(content, list) and content else [{"type": "text", "text": content or ""}]
        yield from ({**rest, key: part} for part in parts)


def _is_empty_answer(block: Mapping[str, Any]) -> bool:
    part = block.get("content")
    return block.get("role") == "assistant" and isinstance(part, Mapping) and part.get("text") == ""


def _without_markers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_markers(inner) for key, inner in value.items() if key != "cache_control"}
    return [_without_markers(inner) for inner in value] if isinstance(value, list) else value


UsageShape = Callable[[Charge, Api, bool], dict[str, Any]]
"""A charge as a usage object: (charge, the request's wire format, whether the request has cache markers)."""


def openai_usage(charge: Charge, api: Api, marked: bool) -> dict[str, Any]:
    if api == "responses":
        return {
            "input_tokens": charge.prompt,
            "input_tokens_details": {"cached_tokens": charge.cache_read, "cache_write_tokens": 0},
            "output_tokens": charge.output,
            "output_tokens_details": {"reasoning_tokens": charge.reasoning},
            "total_tokens": charge.prompt + charge.output,
        }
    return plain_usage(charge, api, marked) | {
        "prompt_tokens_details": {"cached_tokens": charge.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": charge.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def plain_usage(charge: Charge, api: Api, marked: bool) -> dict[str, Any]:
    """As vLLM tells it without `--enable-prompt-tokens-details`."""
    return {
        "prompt_tokens": charge.prompt,
        "total_tokens": charge.prompt + charge.output,
        "completion_tokens": charge.output,
        "prompt_tokens_details": None,
    }


def openrouter_usage(charge: Charge, api: Api, marked: bool) -> dict[str, Any]:
    if api == "messages":
        return anthropic_usage(charge, api, marked) | {"cost": float(charge.cost or 0)}
    usage = openai_usage(charge, api, marked)
    details = usage["input_tokens_details" if api == "responses" else "prompt_tokens_details"]
    details["cache_write_tokens"] = charge.cache_write
    more = {"cost": float(charge.cost or 0), "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    return usage | more


def deepseek_usage(charge: Charge, api: Api, marked: bool) -> dict[str, Any]:
    return {
        "prompt_tokens": charge.prompt,
        "completion_tokens": charge.output,
        "total_tokens": charge.prompt + charge.output,
        "prompt_tokens_details": {"cached_tokens": charge.cache_read},
        "completion_tokens_details": {"reasoning_tokens": charge.reasoning},
        "prompt_cache_hit_tokens": charge.cache_read,
        "prompt_cache_miss_tokens": charge.prompt - charge.cache_read,
    }


def dashscope_usage(charge: Charge, api: Api, marked: bool) -> dict[str, Any]:
    """Without a marker in the request nothing is told of the cache."""
    usage = {
        "prompt_tokens": charge.prompt,
        "completion_tokens": charge.output,
        "total_tokens": charge.prompt + charge.output,
    }
    if not marked:
        return usage
    details = {
        "cached_tokens": charge.cache_read,
        "cache_creation_input_tokens": charge.cache_write,
        "cache_creation": {"ephemeral_5m_input_tokens": charge.cache_write},
        "cache_type": "ephemeral",
    }
    return usage | {"prompt_tokens_details": details}


def anthropic_usage(charge: Charge, api: Api, marked: bool) -> dict[str, Any]:
    written = {"ephemeral_5m_input_tokens": charge.cache_write, "ephemeral_1h_input_tokens": 0}
    return {
        "input_tokens": charge.input,
        "cache_creation_input_tokens": charge.cache_write,
        "cache_read_input_tokens": charge.cache_read,
        "cache_creation": written,
        "output_tokens": charge.output,
        "service_tier": "standard",
    }
