"""Streams that tell their usage: without being asked, chat/completions streams end without any.

Source: OpenAI's API reference, chat/completions, `stream_options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.transforms.base import Transform


class IncludeUsage(Transform):
    """Sets `stream_options.include_usage` in requests that stream; nothing else is touched."""

    name = "include_usage"
    about = "asks streams for their usage (`stream_options.include_usage`), which they end without otherwise"

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request, asking for usage if it streams."""
        if body.get("stream") is not True:
            return dict(body)
        options = body.get("stream_options")
        others = options if isinstance(options, Mapping) else {}
        return {**body, "stream_options": {**others, "include_usage": True}}
