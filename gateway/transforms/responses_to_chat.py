"""The responses API for providers that know chat/completions alone, both ways.

No state is kept: a request that goes on from a response that was stored (`previous_response_id`) is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.transforms.base import Transform
from gateway.transforms.responses_reply import ReplyConverter
from gateway.transforms.responses_request import to_chat

__all__ = ["ReplyConverter", "ResponsesToChat"]


class ResponsesToChat(Transform):
    """Sends requests of the responses API as chat/completions; `ReplyConverter` turns the replies back."""

    name = "responses_to_chat"
    about = "sends requests of the responses API as chat/completions and turns the replies back"
    apis = frozenset({"responses"})

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request in terms of chat/completions."""
        return to_chat(body)
