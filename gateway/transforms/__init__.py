"""Named transforms that a provider may switch on: all that is changed in requests besides key and tools.

`Transforms` is what a case uses; `TRANSFORMS` tells which there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gateway.models import Api
from gateway.transforms.base import Listener, Transform, TransformError
from gateway.transforms.dashscope_cache_control import DashScopeCacheControl
from gateway.transforms.deepseek_reasoning_content import DeepSeekReasoningContent
from gateway.transforms.include_usage import IncludeUsage
from gateway.transforms.responses_to_chat import ReplyConverter, ResponsesToChat

__all__ = ["TRANSFORMS", "Listener", "ReplyConverter", "Transform", "TransformError", "Transforms"]

TRANSFORMS: Mapping[str, type[Transform]] = MappingProxyType(
    {
        transform.name: transform
        for transform in (IncludeUsage, DashScopeCacheControl, DeepSeekReasoningContent, ResponsesToChat)
    }
)
"""By their names in the providers' file."""


class Transforms:
    """The transforms of one case."""

    def __init__(self, names: Iterable[str]) -> None:
        """Set them up (raises ValueError for an unknown name; the message lists those that there are).

        Args:
            names: in the order in which they apply. `responses_to_chat` comes first wherever it stands, so
                that the others see the request that is sent.
        """
        names = list(names)
        for name in names:
            if name not in TRANSFORMS:
                raise ValueError(f"unknown transform {name!r}; known are {', '.join(TRANSFORMS)}")
        self._converts = ResponsesToChat.name in names
        self._others = [TRANSFORMS[name]() for name in names if name != ResponsesToChat.name]

    def request(self, api: Api, body: Mapping[str, Any]) -> tuple[Api, dict[str, Any]]:
        """The request to send, and its wire format; where that is another, `reply_converter` turns the reply back.

        Raises:
            TransformError: it can't be sent in the provider's terms.
        """
        sent = dict(body)
        if self._converts and api in ResponsesToChat.apis:
            api, sent = "chat", ResponsesToChat().request(body)
        for transform in self._others:
            if api in transform.apis:
                sent = transform.request(sent)
        return api, sent

    def listeners(self, api: Api) -> list[Listener]:
        """Fresh listeners for one reply.

        Args:
            api: the wire format in which the request was sent.
        """
        heard = [transform.reply_listener() for transform in self._others if api in transform.apis]
        return [listener for listener in heard if listener]
