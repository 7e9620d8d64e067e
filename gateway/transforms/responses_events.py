"""A reply of chat/completions put together as a response of OpenAI's responses API, event by event.

Source: OpenAI's API reference, "Streaming events" and "The response object". The order is the official one:
created, in_progress, then each output item whole (added, its parts or arguments, done), then the end.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gateway.metering.usage import usage_of
from gateway.transforms.base import mappings

Event = dict[str, Any]

_ECHOED: Mapping[str, Any] = MappingProxyType(
    {
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "reasoning": {"effort": None, "summary": None},
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }
)
"""What a response repeats of its request, and what stands for what the request left out."""
_CUT_SHORT = MappingProxyType({"length": "max_output_tokens", "content_filter": "content_filter"})
"""Finish reasons of a reply that is not whole, in the words of the responses API."""


class BrokenReplyError(ValueError):
    """The chat reply can't be told as a response."""


@dataclass(frozen=True)
class _Text:
    """Where a text of a chat message stands in a response."""

    item: str
    part: str
    field: str
    event: str
    more: Mapping[str, Any]
    """What else the part holds."""


_REASONING = _Text("reasoning", "reasoning_text", "text", "response.reasoning_text", {})
_TEXTS: Mapping[str, _Text] = MappingProxyType(
    {
        "reasoning_content": _REASONING,
        "reasoning": _REASONING,
        "content": _Text(
            "message", "output_text", "text", "response.output_text", {"annotations": [], "logprobs": []}
        ),
        "refusal": _Text("message", "refusal", "refusal", "response.refusal", {}),
    }
)
"""By their keys in a chat message, in the order in which a model writes them."""


class ResponseWriter:
    """Takes a chat reply's chunks, or its body as one, and tells the events of the response."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """Begin a response.

        Args:
            request: the request of the responses API that it answers.
        """
        echoed = {key: default if request.get(key) is None else request[key] for key, default in _ECHOED.items()}
        self.response: dict[str, Any] = {
            "id": f"resp_{secrets.token_hex(24)}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": request.get("model"),
            "output": [],
            "usage": None,
            **echoed,
        }
        self.ended = False
        self.finish_reason: str | None = None
        self._begun = False
        self._number = 0
        self._open = False
        self._text: _Text | None = None
        self._calls: dict[int, dict[str, Any]] = {}

    def take(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        """The events that one chunk, or a whole body, brings (raises BrokenReplyError)."""
        if not self._begun:
            self._begun = True
            self.response["model"] = chunk.get("model") or self.response["model"]
            yield self._event("response.created", response=deepcopy(self.response))
            yield self._event("response.in_progress", response=deepcopy(self.response))
        if isinstance(chunk.get("usage"), Mapping):
            self.response["usage"] = _usage(chunk["usage"])
        for choice in mappings(chunk.get("choices")):
            # Requests of the responses API can't ask for more than one.
            if not choice.get("index"):
                for message in mappings([choice.get("delta") or choice.get("message")]):
                    yield from self._take_message(message)
                self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def end(self) -> Iterator[Event]:
        """The last events of a reply that is complete."""
        cut_short = _CUT_SHORT.get(self.finish_reason or "")
        status = "incomplete" if cut_short else "completed"
        yield from self._close(status)
        self.ended = True
        self.response["status"] = status
        self.response["incomplete_details"] = {"reason": cut_short} if cut_short else None
        yield self._event(f"response.{status}", response=deepcopy(self.response))

    def fail(self, code: str, message: str) -> Event:
        """The last event of a reply that broke."""
        self.ended = True
        self.response |= {"status": "failed", "error": {"code": code, "message": message}}
        return self._event("response.failed", response=deepcopy(self.response))

    def _take_message(self, message: Mapping[str, Any]) -> Iterator[Event]:
        texts = {key: message.get(key) for key in _TEXTS}
        if texts["reasoning_content"]:
            texts["reasoning"] = None  # some send it under both names
        for key, text in texts.items():
            if isinstance(text, str) and text:
                yield from self._write(_TEXTS[key], text)
        for position, call in enumerate(mappings(message.get("tool_calls"))):
            index = call.get("index")
            yield from self._call(index if isinstance(index, int) else position, call)

    def _write(self, kind: _Text, text: str) -> Iterator[Event]:
        if not self._open or self._item["type"] != kind.item:
            yield from self._close("completed")
            yield self._added(_text_item(kind))
        if self._text is not kind:
            yield from self._close_part()
            self._text = kind
            part = {"type": kind.part, kind.field: "", **kind.more}
            self._item["content"].append(part)
            yield self._part_event("response.content_part.added", part=deepcopy(part))
        part = self._item["content"][-1]
        part[kind.field] += text
        yield self._part_event(f"{kind.event}.delta", delta=text, **_logprobs(kind))

    def _call(self, index: int, call: Mapping[str, Any]) -> Iterator[Event]:
        function = next(iter(mappings([call.get("function")])), {})
        if index not in self._calls:
            yield from self._close("completed")
            self._calls[index] = item = {
                "id": f"fc_{secrets.token_hex(24)}",
                "type": "function_call",
                "status": "in_progress",
                "call_id": call.get("id") or f"call_{secrets.token_hex(12)}",
                "name": function.get("name") or "",
                "arguments": "",
            }
            yield self._added(item)
        if not self._open or self._item is not self._calls[index]:
            raise BrokenReplyError("the provider's reply goes on with a tool call after the next one began")
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments:
            self._item["arguments"] += arguments
            yield self._item_event("response.function_call_arguments.delta", delta=arguments)

    def _close(self, status: str) -> Iterator[Event]:
        """End the item that is open."""
        if not self._open:
            return
        if self._item["type"] == "function_call":
            yield self._item_event("response.function_call_arguments.done", arguments=self._item["arguments"])
        yield from self._close_part()
        self._item["status"] = status
        yield self._event("response.output_item.done", output_index=self._index, item=deepcopy(self._item))
        self._open = False

    def _close_part(self) -> Iterator[Event]:
        kind, self._text = self._text, None
        if kind is None:
            return
        part = self._item["content"][-1]
        yield self._part_event(f"{kind.event}.done", **{kind.field: part[kind.field]}, **_logprobs(kind))
        yield self._part_event("response.content_part.done", part=deepcopy(part))

    def _added(self, item: dict[str, Any]) -> Event:
        self._open = True
        self.response["output"].append(item)
        return self._event("response.output_item.added", output_index=self._index, item=deepcopy(item))

    @property
    def _item(self) -> dict[str, Any]:
        """The item that is open, or was last."""
        item: dict[str, Any] = self.response["output"][-1]
        return item

    @property
    def _index(self) -> int:
        return len(self.response["output"]) - 1

    def _part_event(self, kind: str, **fields: Any) -> Event:
        return self._item_event(kind, content_index=len(self._item["content"]) - 1, **fields)

    def _item_event(self, kind: str, **fields: Any) -> Event:
        return self._event(kind, item_id=self._item["id"], output_index=self._index, **fields)

    def _event(self, kind: str, **fields: Any) -> Event:
        number, self._number = self._number, self._number + 1
        return {"type": kind, "sequence_number": number, **fields}


def _text_item(kind: _Text) -> dict[str, Any]:
    if kind.item == "reasoning":
        identity = f"rs_{secrets.token_hex(24)}"
        return {"id": identity, "type": "reasoning", "status": "in_progress", "summary": [], "content": []}
    identity = f"msg_{secrets.token_hex(24)}"
    return {"id": identity, "type": "message", "status": "in_progress", "role": "assistant", "content": []}


def _logprobs(kind: _Text) -> dict[str, Any]:
    return {"logprobs": []} if "logprobs" in kind.more else {}


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """A usage object of the responses API, whose classes can't be unknown."""
    counts = usage_of("chat", usage)
    cached, written, output = counts.cache_read or 0, counts.cache_write or 0, counts.output or 0
    prompt = (counts.input or 0) + cached + written
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning or 0},
        "total_tokens": prompt + output,
    }
