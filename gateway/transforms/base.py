"""What a transform is: a named, declared change of the requests that go to a provider."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from gateway.models import Api

Listener = Callable[[dict[str, Any]], None]
"""Gets each JSON object of one reply, in order: its body, or what its events hold."""


class TransformError(ValueError):
    """The request can't be sent on in the provider's terms; the message is for the client (HTTP 400)."""


class Transform(ABC):
    """A change of requests, and what it must know of replies. One instance serves one case."""

    name: ClassVar[str]
    """As it stands in the providers' file and in the manifest."""
    about: ClassVar[str]
    """One line for documentation."""
    apis: ClassVar[frozenset[Api]] = frozenset({"chat"})
    """The wire formats whose requests it changes; those of others it leaves alone."""

    @abstractmethod
    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request to send instead (raises TransformError).

        Args:
            body: a request's JSON, of one of `apis`; it is not changed.
        """

    def reply_listener(self) -> Listener | None:
        """A fresh listener for one reply; None for a transform that need not know of replies."""
        return None


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list of JSON; what is no list, or no object in it, is left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
