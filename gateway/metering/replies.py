"""Reads the JSON objects of a reply: one class for each wire format, fed object by object.

They keep a few flags and the last usage, never a text. They accept any JSON and ignore unknown shapes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gateway.case_models import Api, Ending, TokenCounts
from gateway.metering.reply_usage import UNKNOWN, surcharges, told_cost, usage_of

JsonObject = dict[str, Any]

_LIMIT_WORDS = ("rate_limit", "rate limit", "overloaded", "too_many_requests", "quota")
"""In an error's `type` or `code`: Anthropic's rate_limit_error and overloaded_error, OpenAI's rate_limit_exceeded
and insufficient_quota, Moonshot's engine_overloaded_error."""
_PROVIDER_TOOLS = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
"""Tools of OpenAI's responses that have a fee of their own."""
_LIMIT_STATUSES = ("429", "529")
"""OpenRouter's `code` is the HTTP status that the error would have had; 529 is Anthropic's for an overload."""


class Follower(ABC):
    """What is known of one reply so far."""

    api: Api

    def __init__(self) -> None:
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.said = False
        """Whether there was text or a tool call; reasoning alone is neither."""
        self.thought = False
        """Whether there was reasoning."""
        self.searched = False
        """Whether a tool with a fee of its own ran at the provider."""
        self.ended = False
        """Whether the reply's own end marker was seen."""
        self.failure: tuple[Ending, str] | None = None
        """The first error that the reply holds."""
        self._usage: Mapping[str, Any] = {}
        self._tier: object = None
        """The reply's own `service_tier`."""

    @abstractmethod
    def event(self, data: JsonObject) -> None:
        """An object of a stream."""

    @abstractmethod
    def body(self, data: JsonObject) -> bool:
        """A whole reply; False: it is not of this wire format."""

    @property
    def tokens(self) -> TokenCounts | None:
        """The tokens as reported; None if none of them is known.

        A stream may report counts as it goes. If it broke off, the final count of the output is unknown. An output of
        0 tokens is not believed if something was said.
        """
        counts = usage_of(self.api, self._usage)
        if not (self.ended or self.stop_reason) or (counts.output == 0 and (self.said or self.thought)):
            counts = counts.model_copy(update={"output": None, "reasoning": None})
        return None if counts == UNKNOWN else counts

    @property
    def cost(self) -> Decimal | None:
        """The cost as reported. A cost of 0 without counts is a field that was not filled in."""
        cost = told_cost(self._usage)
        return cost if cost or self.tokens is not None else None

    @property
    def surcharges(self) -> tuple[str, ...]:
        """What the reply cost beside the list price of its tokens."""
        found = surcharges(self._usage, self._tier)
        return (*found, "tools at the provider") if self.searched else found

    def fail(self, error: object) -> None:
        """Note an error object, or what the provider sent in its place."""
        told = as_object(error)
        words = [str(told[key]) for key in ("type", "code") if isinstance(told.get(key), str | int)]
        message = told.get("message") if told else error
        if isinstance(message, str):
            words.append(message)
        kinds = " ".join(str(told.get(key)) for key in ("type", "code")).lower()
        limited = any(word in kinds for word in _LIMIT_WORDS) or str(told.get("code")) in _LIMIT_STATUSES
        self.failure = self.failure or ("rate_limited" if limited else "server_error", ": ".join(words))

    def _named(self, data: Mapping[str, Any]) -> None:
        self.model = self.model or _word(data.get("model"))
        self._tier = data.get("service_tier") or self._tier

    def _take_usage(self, usage: Mapping[str, Any]) -> None:
        """Replace the usage, unless the new one has only zeros and the one before had more."""
        if any(isinstance(value, int) and value > 0 for value in usage.values()) or not self._usage:
            self._usage = usage


class ChatFollower(Follower):
    """OpenAI's chat/completions, and the many providers that follow it.

    A stream ends with `[DONE]`, or, as some never send that, when every choice has its `finish_reason`.
    """

    api: Api = "chat"

    def __init__(self) -> None:
        super().__init__()
        self._open: set[int] = set()
        self._finished: set[int] = set()

    def event(self, data: JsonObject) -> None:
        """A chunk. Its usage covers the whole reply so far, so the last one counts."""
        self._read(data, "delta")

    def body(self, data: JsonObject) -> bool:
        """A completion, or the error in its place that OpenRouter sends with status 200."""
        self._read(data, "message")
        self.ended = True
        return "choices" in data or self.failure is not None

    def _read(self, data: JsonObject, part: str) -> None:
        self._named(data)
        if data.get("error"):
            self.fail(data["error"])
        usages = [as_object(data.get("usage")), as_object(as_object(data.get("x_groq")).get("usage"))]
        for choice in _objects(data.get("choices")):
            self._choice(choice, as_object(choice.get(part)))
            # Moonshot's streams have it here
            usages.append(as_object(choice.get("usage")))
        self._take_usage(next((usage for usage in usages if usage), {}))

    def _choice(self, choice: JsonObject, message: JsonObject) -> None:
        if choice.get("error"):
            self.fail(choice["error"])
        self.said = self.said or any(_says(message.get(key)) for key in ("content", "refusal"))
        self.said = self.said or any(message.get(key) for key in ("tool_calls", "function_call", "audio"))
        self.thought = self.thought or any(message.get(key) for key in ("reasoning_content", "reasoning"))
        index = choice.get("index")
        number = index if isinstance(index, int) else 0
        reason = _word(choice.get("finish_reason"))
        if reason:
            self.stop_reason = reason
            self._finished.add(number)
            self._open.discard(number)
        elif number not in self._finished:
            self._open.add(number)
        self.ended = not self._open


class MessagesFollower(Follower):
    """Anthropic's messages: a stream ends with `message_stop`, and its counts are cumulative."""

    api: Api = "messages"

    def event(self, data: JsonObject) -> None:
        """One of message_start, content_block_start, content_block_delta, message_delta, message_stop, error."""
        match data.get("type"):
            case "message_start":
                message = as_object(data.get("message"))
                told = as_object(message.get("usage"))
                # the count of the output is a placeholder here: the true number comes with message_delta
                prompt = {key: value for key, value in told.items() if not key.startswith("output_")}
                self._message(message | {"usage": prompt})
            case "content_block_start":
                self._block(as_object(data.get("content_block")))
            case "content_block_delta":
                self._block(as_object(data.get("delta")))
            case "message_delta":
                self._message(as_object(data.get("delta")) | {"usage": data.get("usage")})
            case "message_stop":
                self.ended = True
            case "error":
                self.fail(data.get("error"))

    def body(self, data: JsonObject) -> bool:
        """A message, or an error."""
        if data.get("type") == "error" or "error" in data:
            self.fail(data.get("error"))
            return True
        self._message(data)
        self.ended = True
        return "content" in data

    def _message(self, message: Mapping[str, Any]) -> None:
        self._named(message)
        self.stop_reason = _word(message.get("stop_reason")) or self.stop_reason
        told = as_object(message.get("usage"))
        # a count that was reported does not become 0 later
        mended = {key: value for key, value in told.items() if value or (value == 0 and not self._usage.get(key))}
        self._usage = {**self._usage, **mended}
        for block in _objects(message.get("content")):
            self._block(block)

    def _block(self, block: JsonObject) -> None:
        # tool_use, server_tool_use, mcp_tool_use; a thinking block has no `text`
        called = str(block.get("type")).endswith("tool_use")
        self.said = self.said or called or _says(block.get("text"))
        self.thought = self.thought or _says(block.get("thinking"))


class ResponsesFollower(Follower):
    """OpenAI's responses: the event that ends a stream repeats the whole response."""

    api: Api = "responses"

    def event(self, data: JsonObject) -> None:
        """A `response.*` event, or `error`, which has its code and message beside its type."""
        kind = str(data.get("type"))
        match kind:
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self.body(as_object(data.get("response")))
            case "response.output_text.delta" | "response.refusal.delta":
                self.said = self.said or _says(data.get("delta"))
            case "response.output_item.added" | "response.output_item.done":
                self._item(as_object(data.get("item")))
            case "error":
                # its `type` only says that it is an error
                self.fail(data.get("error") or {key: value for key, value in data.items() if key != "type"})
            case _:
                self._named(as_object(data.get("response")))
                if not kind.startswith("response.") and data.get("error"):
                    self.fail(data["error"])

    def body(self, data: JsonObject) -> bool:
        """A response."""
        self._named(data)
        status = _word(data.get("status"))
        # the details are more exact than `incomplete`: max_output_tokens, content_filter
        self.stop_reason = _word(as_object(data.get("incomplete_details")).get("reason")) or status
        self._take_usage(as_object(data.get("usage")))
        for item in _objects(data.get("output")):
            self._item(item)
        if data.get("error") or status == "failed":
            self.fail(data.get("error") or "the response failed")
        self.ended = True
        return "output" in data or self.failure is not None

    def _item(self, item: JsonObject) -> None:
        match item.get("type"):
            case "message":
                parts = list(_objects(item.get("content")))
                self.said = self.said or any(_says(part.get(key)) for part in parts for key in ("text", "refusal"))
            case "reasoning":
                self.thought = True
            case "compaction" | None:
                pass
            case kind:
                # a call of any kind of tool
                self.said = True
                self.searched = self.searched or kind in _PROVIDER_TOOLS


FOLLOWERS: Mapping[Api, type[Follower]] = {
    "chat": ChatFollower,
    "messages": MessagesFollower,
    "responses": ResponsesFollower,
}


def as_object(value: object) -> JsonObject:
    """The value, if it is a JSON object; else an empty one."""
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[JsonObject]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _says(value: object) -> bool:
    """Whether a message's content, a string or parts, holds any text."""
    if isinstance(value, str):
        return bool(value.strip())
    return any(_says(part.get("text")) for part in _objects(value))
