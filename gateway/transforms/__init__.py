"""Named transforms that a provider may switch on: the only changes of requests besides key and tool filter.

`Transforms` is what a case uses; `TRANSFORMS` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gateway.case_models import Api
from gateway.metering.reader import Listener
from gateway.transforms.base import Transform
from gateway.transforms.dashscope_cache_control import DashScopeCacheControl
from gateway.transforms.deepseek_reasoning_content import DeepSeekReasoningContent
from gateway.transforms.include_usage import IncludeUsage

__all__ = ["TRANSFORMS", "Transform", "Transforms"]

TRANSFORMS: Mapping[str, type[Transform]] = MappingProxyType(
    {transform.name: transform for transform in (IncludeUsage, DashScopeCacheControl, DeepSeekReasoningContent)}
)
"""By their names in the providers' file."""


class Transforms:
    """The transforms of one case."""

    def __init__(self, names: Iterable[str]) -> None:
        """Set them up.

        Args:
            names: in the order in which they apply.

        Raises:
            ValueError: a name is unknown; the message lists the known ones.
        """
        names = list(names)
        for name in names:
            if name not in TRANSFORMS:
                raise ValueError(f"unknown transform {name!r}; known are {', '.join(TRANSFORMS)}")
        self._transforms = [TRANSFORMS[name]() for name in names]

    def request(self, api: Api, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request to send in place of a claw's."""
        sent = dict(body)
        for transform in self._transforms:
            if api in transform.apis:
                sent = transform.request(sent)
        return sent

    def listeners(self, api: Api) -> list[Listener]:
        """Fresh listeners for one reply of a wire format."""
        heard = [transform.reply_listener() for transform in self._transforms if api in transform.apis]
        return [listener for listener in heard if listener]
