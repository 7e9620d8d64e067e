"""Markers for DashScope's explicit cache, and assistant texts that its cache can match.

DashScope documents (Alibaba Cloud Model Studio, "Context cache", section "Explicit cache"): a marker is
`cache_control: {"type": "ephemeral"}` on a part of a message's content, of any role; content that is a string
matches the same text as a part. A request holds at most 4 markers. Everything from the tools on up to a
marker is cached; a marker finds an older block that ends at most 20 content parts before it.

It does not document that an assistant message without text beside its tool calls ("" or null) keeps every
later request from matching, so that nothing is read from the cache; with one space as its text it matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.transforms.base import Transform

MOST_MARKERS = 4
MARKER: Mapping[str, str] = {"type": "ephemeral"}
BLANK = " "
"""The text of an assistant message that had none."""


class DashScopeCacheControl(Transform):
    """Marks the instructions, the end of the request before, and the end of this one."""

    name = "dashscope_cache_control"

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request with markers; those that the claw set itself count and stay."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return dict(body)
        filled = [_filled(message) for message in messages]
        free = MOST_MARKERS - sum(map(_markers, filled))
        for index in _ends(filled):
            if free > 0 and not _markers(filled[index]):
                marked = _marked(filled[index])
                free -= marked is not filled[index]
                filled[index] = marked
        return {**body, "messages": filled}


def _ends(messages: Sequence[Any]) -> Iterable[int]:
    """Where markers belong, the most useful first.

    The previous request ended where the last assistant message is now: a marker there finds its block however many
    parts came since, whereas a marker at the end only looks back 20 parts.
    """
    roles = [message.get("role") if isinstance(message, Mapping) else None for message in messages]
    last = len(roles) - 1
    said = [index for index, role in enumerate(roles) if role == "assistant"]
    before = said[-1] - 1 if said else -1
    instructions = [index for index, role in enumerate(roles) if role in ("system", "developer")]
    return dict.fromkeys(index for index in (last, before, *instructions[-1:]) if index >= 0)


def _filled(message: Any) -> Any:
    if not isinstance(message, Mapping) or message.get("role") != "assistant":
        return message
    content = message.get("content")
    if isinstance(content, list):
        texts = [part for part in content if part != {"type": "text", "text": ""}]
        return message if texts == content and texts else {**message, "content": texts or BLANK}
    return message if content else {**message, "content": BLANK}


def _markers(message: Any) -> int:
    content = message.get("content") if isinstance(message, Mapping) else None
    parts = content if isinstance(content, list) else []
    return sum(isinstance(part, Mapping) and "cache_control" in part for part in parts)


def _marked(message: Any) -> Any:
    """The message with a marker on its last part; the same object if no part can take one."""
    if not isinstance(message, Mapping):
        return message
    content = message.get("content")
    if isinstance(content, str) and content:
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content or not isinstance(content[-1], Mapping):
        return message
    return {**message, "content": [*content[:-1], {**content[-1], "cache_control": dict(MARKER)}]}
