"""Reads a provider's reply while it passes, and says at its end what it was: tokens, cost, how it ended.

The reader changes nothing. Of a stream it keeps only the event in progress; a reply that is one JSON object is
collected up to MAX_BODY. The same bytes give the same answer, however they are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gateway.case_models import Api, Ending, TokenCounts
from gateway.metering.replies import FOLLOWERS, JsonObject, as_object
from gateway.sse import Event, EventReader, EventTooLargeError, json_or_none

MAX_BODY = 64 * 1024 * 1024
"""The most bytes of a reply that is not a stream; a larger one counts as malformed and is not read."""

DONE = "[DONE]"
"""The data that ends a stream of chat/completions."""

Listener = Callable[[dict[str, Any]], None]
"""Gets each JSON object of one reply, in order: its body, or the data of its events."""


@dataclass(frozen=True)
class Metered:
    """What one reply was."""

    ending: Ending
    """`ok`, `empty`, `malformed`, `dropped`, and, for an error inside a reply with status 200, `server_error` or
    `rate_limited` (a limit or an overload)."""
    usage: TokenCounts | None = None
    """None: the reply reported no usage that makes sense. Single classes may be unknown, too."""
    told_cost: Decimal | None = None
    """US dollars, as the provider reported them; None: it did not."""
    stop_reason: str | None = None
    """Why the model stopped, in the provider's own word."""
    model: str | None = None
    """The model that answered, as the reply names it."""
    surcharges: tuple[str, ...] = ()
    """What the price table does not cover, so that the reply has no known price."""
    error: str = ""
    """What was wrong, empty for `ok` and `empty`. It may quote the provider: mask keys before you keep it."""


class ReplyReader:
    """Reads one reply."""

    def __init__(self, api: Api, *, streaming: bool, listeners: Sequence[Listener] = ()) -> None:
        """Begin a reply.

        Args:
            api: its wire format.
            streaming: whether it is an event stream, as its Content-Type says (not the request).
            listeners: each is called with every JSON object of the reply. What they raise passes through `feed`
                and `finish`.
        """
        self._streaming = streaming
        self._listeners = tuple(listeners)
        self._follower = FOLLOWERS[api]()
        self._events = EventReader()
        self._body = bytearray()
        self._too_large = ""
        self._malformed = ""

    def feed(self, data: bytes) -> None:
        """Read the next bytes, as the provider sent them."""
        if self._too_large:
            return
        if self._streaming:
            try:
                events = self._events.feed(data)
            except EventTooLargeError as error:
                self._too_large = str(error)
                return
            for event in events:
                self._event(event)
        elif len(self._body) + len(data) > MAX_BODY:
            self._too_large = f"the reply is larger than {MAX_BODY} bytes"
            self._body.clear()
        else:
            self._body += data

    def finish(self, *, complete: bool) -> Metered:
        """Say what the reply was.

        Args:
            complete: whether its transport ended properly; False: the connection broke.
        """
        if self._too_large:
            return Metered("malformed", error=self._too_large)
        if self._streaming:
            # without its blank line, the last event is whole if the server left that out, and half if it was cut
            # off
            last = self._events.rest()
            if last and last.data and (last.data.startswith(DONE) or _object(last.data) is not None):
                self._event(last)
        else:
            self._whole_body(complete=complete)
        ending, error = self._ending()
        seen = self._follower
        return Metered(ending, seen.tokens, seen.cost, seen.stop_reason, seen.model, seen.surcharges, error)

    def _ending(self) -> tuple[Ending, str]:
        if self._follower.failure:
            return self._follower.failure
        if self._malformed:
            return "malformed", self._malformed
        if not self._follower.ended:
            return "dropped", "the reply broke off before its end"
        return ("ok" if self._follower.said else "empty"), ""

    def _event(self, event: Event) -> None:
        if event.data is None or not event.data.strip() or event.name == "ping":
            return
        if event.data.startswith(DONE):
            self._follower.ended = True
            return
        data = _object(event.data)
        if data is None:
            self._malformed = self._malformed or "an event is not a JSON object"
            return
        self._follower.event(data)
        if event.name == "error" and not self._follower.failure:
            # an error of an unknown shape
            self._follower.fail(as_object(data.get("error")) or data)
        self._tell(data)

    def _whole_body(self, *, complete: bool) -> None:
        data = _object(self._body)
        if data is not None:
            if not self._follower.body(data):
                self._malformed = "the body is not a reply of this wire format"
            self._tell(data)
        elif complete:
            self._malformed = "the body is not a JSON object"

    def _tell(self, data: JsonObject) -> None:
        for listener in self._listeners:
            listener(data)


def _object(text: str | bytearray) -> JsonObject | None:
    data = json_or_none(text)
    return data if isinstance(data, dict) else None
