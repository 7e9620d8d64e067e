"""Asks for usage in streams: chat/completions streams do not report it unless they are asked to.

Source: OpenAI's API reference, chat/completions, `stream_options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.transforms.base import Transform


class IncludeUsage(Transform):
    """Sets `stream_options.include_usage` in requests that stream, and changes nothing else."""

    name = "include_usage"

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request, asking for usage if it streams."""
        if body.get("stream") is not True:
            return dict(body)
        options = body.get("stream_options")
        others = options if isinstance(options, Mapping) else {}
        return {**body, "stream_options": {**others, "include_usage": True}}
