"""DeepSeek's reasoning, sent back in the requests after a tool call.

DeepSeek documents ("Thinking Mode", sections on multi-turn conversations and on tool calls): if the model called
tools between two user messages, the `reasoning_content` of all its messages there must be sent back in all later
requests, or the API answers 400. If it called none, the field is ignored.

Claws that know only OpenAI's chat/completions drop the field. This transform remembers it from the case's replies.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.metering.reader import Listener
from gateway.transforms.base import Transform, mappings

MOST_KEPT = 4096
MOST_CHARACTERS = 16 * 1024 * 1024
"""How much is remembered for a case; beyond either limit, the oldest is forgotten."""


class DeepSeekReasoningContent(Transform):
    """Adds `reasoning_content` to the assistant messages of requests that lack it."""

    name = "deepseek_reasoning_content"

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._characters = 0

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request, with the reasoning of each assistant message of a turn that called tools."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return dict(body)
        changed = list(messages)
        called = False
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                continue
            if message.get("role") == "user":
                called = False
            if message.get("role") == "assistant":
                called = called or bool(message.get("tool_calls"))
                reasoning = self._reasoning(message) if called and not message.get("reasoning_content") else None
                if reasoning is not None:
                    changed[index] = {**message, "reasoning_content": reasoning}
        return {**body, "messages": changed}

    def reply_listener(self) -> Listener:
        """Assembles one reply and remembers its reasoning when it is complete."""
        reply = _Reply()

        def listen(told: dict[str, Any]) -> None:
            for choice in mappings(told.get("choices")):
                reply.add(choice.get("message") or choice.get("delta"))
                if choice.get("finish_reason") and reply.reasoning:
                    self._keep(reply)

        return listen

    def _keep(self, reply: _Reply) -> None:
        for key in _keys(list(reply.calls.values()), reply.text):
            self._characters += len(reply.reasoning) - len(self._kept.pop(key, ""))
            self._kept[key] = reply.reasoning
        while len(self._kept) > MOST_KEPT or self._characters > MOST_CHARACTERS:
            self._characters -= len(self._kept.popitem(last=False)[1])

    def _reasoning(self, message: Mapping[str, Any]) -> str | None:
        calls = [call.get("id") for call in mappings(message.get("tool_calls"))]
        keys = _keys(calls, _text(message.get("content")))
        return next((self._kept[key] for key in keys if key in self._kept), None)


@dataclass
class _Reply:
    """A reply, as far as it has come."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, Any] = field(default_factory=dict)
    """The ids of its calls, by their index."""

    def add(self, piece: Any) -> None:
        """Add a whole message or a delta of it."""
        if not isinstance(piece, Mapping):
            return
        self.text += _text(piece.get("content"))
        self.reasoning += _text(piece.get("reasoning_content"))
        for position, call in enumerate(mappings(piece.get("tool_calls"))):
            index = call.get("index")
            index = index if isinstance(index, int) else position
            self.calls[index] = self.calls.get(index) or call.get("id")


def _keys(calls: Sequence[Any], text: str) -> list[str]:
    """The keys of a message: the ids of its calls, or its text (claws trim it) if it calls nothing."""
    if calls:
        return [f"call {call}" for call in calls if call]
    return [f"text {hashlib.sha256(text.strip().encode('utf-8', 'surrogatepass')).hexdigest()}"]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in mappings(content))
    return content if isinstance(content, str) else ""
