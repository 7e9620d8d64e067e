"""The usage that a reply reports, in each provider's shape, as four disjoint classes of tokens.

The shapes, and what their prompt counts include:

- chat/completions (OpenAI): `prompt_tokens` includes the cached tokens (`prompt_tokens_details.cached_tokens`) and
  those written to a cache (`.cache_write_tokens`; OpenRouter does the same). Others use other names:
  DeepSeek `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`, Moonshot `cached_tokens` beside the totals,
  DashScope `prompt_tokens_details.cache_creation_input_tokens`, proxies of Anthropic's models
  `cache_read_input_tokens` and `cache_creation_input_tokens`.
- responses (OpenAI): `input_tokens` includes them likewise, with `input_tokens_details`.
- messages (Anthropic): `input_tokens` includes neither; the prompt is the sum of `input_tokens`,
  `cache_read_input_tokens` and `cache_creation_input_tokens`.

A count that is not reported is unknown (None), never 0: if a provider says nothing of a cache, e.g. vLLM with
`prompt_tokens_details: null`, then `cache_read` and `cache_write` are None, and `input` is the whole prompt. A value
that is not a count (negative, a fraction, a boolean, a text), or that contradicts others, makes everything unknown
that depends on it: with more cached tokens than prompt tokens, no class of the prompt is known; with a wrong prompt,
output or total, nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from gateway.case_models import Api, TokenCounts

UNKNOWN = TokenCounts(input=None, cache_read=None, cache_write=None, output=None)
"""The tokens of a reply of which nothing is known."""


class _ContradictionError(ValueError):
    """The numbers of a usage cannot all be true."""


def usage_of(api: Api, usage: Mapping[str, Any]) -> TokenCounts:
    """The tokens of one reply.

    Args:
        api: the wire format of the reply.
        usage: the reply's `usage` object; of an Anthropic stream, all its usage objects merged.
    """
    try:
        if api == "messages":
            reasoning = _object(usage.get("output_tokens_details")).get("thinking_tokens")
            output = _output(_count(usage.get("output_tokens")), reasoning)
            return TokenCounts(**(_messages_prompt(usage) | output))
        # OpenAI's two formats differ only in names
        asked, answered = ("prompt", "completion") if api == "chat" else ("input", "output")
        prompt, written = _count(usage.get(f"{asked}_tokens")), _count(usage.get(f"{answered}_tokens"))
        reasoning = _object(usage.get(f"{answered}_tokens_details")).get("reasoning_tokens")
        apart = _reasoning_is_apart(prompt, written, reasoning, _count(usage.get("total_tokens")))
        return TokenCounts(**(_openai_prompt(usage, asked, prompt) | _output(written, reasoning, apart=apart)))
    except _ContradictionError:
        return UNKNOWN


def told_cost(usage: Mapping[str, Any]) -> Decimal | None:
    """What the provider says that a reply cost, in US dollars (OpenRouter's usage accounting); None if it does not.

    With a key of one's own at the provider behind OpenRouter (`is_byok`), `cost` is OpenRouter's fee alone, and
    the other provider's charge is in `cost_details.upstream_inference_cost`.
    """
    cost = _amount(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    upstream = _amount(_object(usage.get("cost_details")).get("upstream_inference_cost"))
    return None if upstream is None else cost + upstream


def _openai_prompt(usage: Mapping[str, Any], name: str, prompt: int | None) -> dict[str, int | None]:
    details = _object(usage.get(f"{name}_tokens_details"))
    try:
        read = _agreed(
            details.get("cached_tokens"),
            details.get("cache_read_input_tokens"),
            usage.get("prompt_cache_hit_tokens"),
            usage.get("cached_tokens"),
            usage.get("cache_read_input_tokens") if name == "prompt" else None,
        )
        write = _agreed(
            details.get("cache_write_tokens"),
            details.get("cache_creation_input_tokens"),
            usage.get("cache_creation_input_tokens") if name == "prompt" else None,
        )
        missed = _count(usage.get("prompt_cache_miss_tokens"))
        write, hour = _written(write, details.get("cache_creation") or usage.get("cache_creation"))
        if prompt is None:
            return _prompt(None, read, write, hour)
        rest = prompt - (read or 0) - (write or 0)
        if rest < 0 or (missed is not None and missed + (read or 0) != prompt):
            raise _ContradictionError
    except _ContradictionError:
        return _prompt(None, None, None, None)
    return _prompt(rest, read, write, hour)


def _messages_prompt(usage: Mapping[str, Any]) -> dict[str, int | None]:
    try:
        read = _count(usage.get("cache_read_input_tokens"))
        write, hour = _written(_count(usage.get("cache_creation_input_tokens")), usage.get("cache_creation"))
        return _prompt(_count(usage.get("input_tokens")), read, write, hour)
    except _ContradictionError:
        return _prompt(None, None, None, None)


def _prompt(rest: int | None, read: int | None, write: int | None, hour: int | None) -> dict[str, int | None]:
    return {"input": rest, "cache_read": read, "cache_write": write, "cache_write_1h": hour}


def _written(write: int | None, creation: object) -> tuple[int | None, int | None]:
    """The tokens written to a cache, and those of them that are kept for an hour (from `cache_creation`)."""
    short = _count(_object(creation).get("ephemeral_5m_input_tokens"))
    hour = _count(_object(creation).get("ephemeral_1h_input_tokens"))
    if short is None and hour is None:
        return write, None
    parts = (short or 0) + (hour or 0)
    if write is not None and parts > write:
        raise _ContradictionError
    return (parts if write is None else write), hour


def _output(output: int | None, reasoning: object, *, apart: bool = False) -> dict[str, int | None]:
    """The output and the reasoning in it; the count of the output includes it unless it is reported apart."""
    try:
        thought = _count(reasoning)
        if apart and output is not None:
            output += thought or 0
        if thought is not None and output is not None and thought > output:
            raise _ContradictionError
    except _ContradictionError:
        return {"output": None, "reasoning": None}
    return {"output": output, "reasoning": thought}


def _reasoning_is_apart(prompt: int | None, output: int | None, reasoning: object, total: int | None) -> bool:
    """Whether the count of the output excludes reasoning, as with xAI; the total shows it.

    Raises:
        _ContradictionError: the total is not the sum of the parts, so one of them is wrong.
    """
    if prompt is None or output is None or total is None or total == prompt + output:
        return False
    if total == prompt + output + (_count(reasoning) or 0):
        return True
    raise _ContradictionError


def _agreed(*values: object) -> int | None:
    """The one count that is reported under several names."""
    counts = {count for value in values if (count := _count(value)) is not None}
    if len(counts) > 1:
        raise _ContradictionError
    return counts.pop() if counts else None


def _count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _ContradictionError
    return value


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    amount = Decimal(repr(value))
    return amount if amount.is_finite() and amount >= 0 else None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
