"""What a transform is: a named, declared change of the requests that go to a provider."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from gateway.case_models import Api
from gateway.metering.reader import Listener


class Transform(ABC):
    """A change of requests, and what it must learn from replies. One instance serves one case."""

    name: ClassVar[str]
    """As in the providers' file and in the manifest."""
    apis: ClassVar[frozenset[Api]] = frozenset({"chat"})
    """The wire formats whose requests it changes; it leaves the others alone."""

    @abstractmethod
    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request to send instead.

        Args:
            body: a request's JSON, in one of `apis`; it is not changed.
        """

    def reply_listener(self) -> Listener | None:
        """A fresh listener for one reply; None for a transform that ignores replies."""
        return None


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects in a JSON list; anything else is left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
