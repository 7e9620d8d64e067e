"""The usage that a reply reports, in each provider's shape, as four disjoint classes of tokens.

The shapes, and what their prompt counts include:

- chat/completions (OpenAI): `prompt_tokens` includes the cached tokens (`prompt_tokens_details.cached_tokens`) and
  those written to a cache (`.cache_write_tokens`; OpenRouter does the same). Others use other names:
  DeepSeek `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`, Moonshot `cached_tokens` beside the totals,
  DashScope `prompt_tokens_details.cache_creation_input_tokens`, proxies of Anthropic's models
  `cache_read_input_tokens` and `cache_creation_input_tokens`, LiteLLM `prompt_tokens_details.cache_creation_tokens`
  with `.cache_creation_token_details`.
- responses (OpenAI): `input_tokens` includes them likewise, with `input_tokens_details`.
- messages (Anthropic): `input_tokens` includes neither; the prompt is the sum of `input_tokens`,
  `cache_read_input_tokens` and `cache_creation_input_tokens`.

Anthropic's top-level counts leave out what a compaction took; the sum over `usage.iterations` is what is charged.
A total above the sum of the parts is tokens that the provider charges and does not name, such as Gemini's thinking:
they are output.

A count that is not reported is unknown (None), never 0: if a provider says nothing of a cache, e.g. vLLM with
`prompt_tokens_details: null`, then `cache_read` and `cache_write` are None, and `input` is the whole prompt. A value
that is not a count (negative, a fraction, a boolean, a text), or that contradicts others, makes everything unknown
that depends on it: with more cached tokens than prompt tokens, no class of the prompt is known; with a wrong prompt,
output or total, nothing is. A prompt of 0 tokens is not believed, as every request has one; nor is an output of 0
where the reply said something (see `Follower.tokens`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from gateway.case_models import Api, TokenCounts

_USUAL_TIERS = ("standard", "default", "auto", "on_demand", "")
"""The service tiers of the list price: Anthropic's, OpenAI's, Groq's."""
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
            usage = _with_iterations(usage)
            reasoning = _object(usage.get("output_tokens_details")).get("thinking_tokens")
            tokens, written = _believed(_messages_prompt(usage)), _count(usage.get("output_tokens"))
            parts = [tokens[name] for name in ("input", "cache_read", "cache_write")]
            prompt = None if parts[0] is None else sum(part or 0 for part in parts)
            more = _beyond_parts(prompt, written, _count(usage.get("total_tokens")))
            return TokenCounts(**(tokens | _output(written, reasoning, unnamed=more)))
        # OpenAI's two formats differ only in names
        asked, answered = ("prompt", "completion") if api == "chat" else ("input", "output")
        prompt, written = _count(usage.get(f"{asked}_tokens")), _count(usage.get(f"{answered}_tokens"))
        reasoning = _object(usage.get(f"{answered}_tokens_details")).get("reasoning_tokens")
        tokens = _believed(_openai_prompt(usage, asked, prompt))
        more = _beyond_parts(prompt, written, _count(usage.get("total_tokens")))
        unnamed = more if more == reasoning else _unnamed(more, tokens)
        return TokenCounts(**(tokens | _output(written, reasoning, unnamed=unnamed)))
    except _ContradictionError:
        return UNKNOWN


def surcharges(usage: Mapping[str, Any], tier: object) -> tuple[str, ...]:
    """What the price table does not cover: another service tier, fast mode, a region, tools that run at the provider.

    Args:
        usage: the reply's `usage` object.
        tier: the reply's own `service_tier`, where OpenAI has it.
    """
    tiers = (value for value in (tier, usage.get("service_tier")) if isinstance(value, str))
    found = [f"service tier {value}" for value in tiers if value not in _USUAL_TIERS]
    speed, region = usage.get("speed"), usage.get("inference_geo")
    if isinstance(speed, str) and speed != "standard":
        found.append(f"speed {speed}")
    if isinstance(region, str) and region not in ("", "global", "not_available"):
        found.append(f"region {region}")
    uses = {**_object(usage.get("server_tool_use")), "num_search_queries": usage.get("num_search_queries")}
    found += [f"{count} {name}" for name, count in uses.items() if isinstance(count, int) and count > 0]
    return tuple(dict.fromkeys(found))


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
            details.get("cache_creation_tokens"),
            usage.get("cache_creation_input_tokens") if name == "prompt" else None,
        )
        missed = _count(usage.get("prompt_cache_miss_tokens"))
        kept = details.get("cache_creation") or details.get("cache_creation_token_details")
        write, hour = _written(write, kept or usage.get("cache_creation"))
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


def _believed(prompt: dict[str, int | None]) -> dict[str, int | None]:
    """The counts of a prompt; unknown if they are all 0, as every request has a prompt."""
    return prompt if prompt["input"] != 0 or any(prompt.values()) else _prompt(None, None, None, None)


def _with_iterations(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Usage with the sums over its iterations in place of its top-level counts."""
    iterations = [one for one in usage.get("iterations") or () if isinstance(one, Mapping)]
    if not iterations:
        return usage
    kinds = {row.get("type") for row in iterations}
    if "message" not in kinds or not kinds <= {"message", "compaction"}:
        raise _ContradictionError  # the work of another model, or without the reply itself

    def total(name: str, rows: Sequence[Mapping[str, Any]]) -> int | None:
        counts = [_count(row.get(name)) for row in rows]
        return sum(count or 0 for count in counts) if any(count is not None for count in counts) else None

    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if any(row.get(name) is None for row in iterations for name in names[:2]):
        raise _ContradictionError  # a part of what is charged is missing
    kept = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
    creations = [_object(row.get("cache_creation")) for row in iterations]
    return {
        **usage,
        **{name: total(name, iterations) for name in names},
        "cache_creation": {name: total(name, creations) for name in kept},
    }


def _output(output: int | None, reasoning: object, *, unnamed: int = 0) -> dict[str, int | None]:
    """The output and the reasoning in it.

    Args:
        output: as reported.
        reasoning: as reported.
        unnamed: tokens that only the total shows; they are part of the output.
    """
    try:
        thought = _count(reasoning)
        if output is not None:
            output += unnamed
        if thought is not None and output is not None and thought > output:
            raise _ContradictionError
    except _ContradictionError:
        return {"output": None, "reasoning": None}
    return {"output": output, "reasoning": thought}


def _beyond_parts(prompt: int | None, output: int | None, total: int | None) -> int:
    """How many tokens the total has beyond the prompt and the output.

    Raises:
        _ContradictionError: it has fewer.
    """
    if prompt is None or output is None or total is None:
        return 0
    if total < prompt + output:
        raise _ContradictionError
    return total - prompt - output


def _unnamed(more: int, tokens: Mapping[str, int | None]) -> int:
    """The tokens of the total that are output without a name, as the thinking of Gemini.

    Raises:
        _ContradictionError: they are as many as those of the cache, which the prompt may or may not include.
    """
    read, write = tokens["cache_read"] or 0, tokens["cache_write"] or 0
    if more and more in (read, write, read + write):
        raise _ContradictionError
    return more


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
