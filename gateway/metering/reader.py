"""Reads a provider's reply while it passes, and says at its end what it was: tokens, cost, how it ended.

The reader sees the bytes and changes nothing. Of a stream it keeps the event that is under way, no more; a reply
that is one JSON object is gathered up to MAX_BODY. The same bytes give the same answer for any cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gateway.metering.decoding import BrokenEncodingError, Decoder, decoder_of
from gateway.metering.replies import FOLLOWERS, JsonObject, as_object
from gateway.metering.sse import EventTooLargeError, SseEvent, SseParser
from gateway.models import Api, Ending, TokenCounts

MAX_BODY = 64 * 1024 * 1024
"""The most decoded bytes of a reply that is no stream; a larger one counts as malformed, and tells nothing."""

DONE = "[DONE]"
"""What ends a stream of chat/completions."""

Listener = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Metered:
    """What one reply was."""

    ending: Ending
    """`ok`, `empty`, `malformed`, `dropped`, and, for an error inside a reply with status 200, `server_error` or
    `rate_limited` (a limit or an overload)."""
    usage: TokenCounts | None = None
    """None: the reply told no usage that makes sense. Single classes may be unknown, too."""
    told_cost: Decimal | None = None
    """US dollars, as the provider told them; None: it did not."""
    stop_reason: str | None = None
    """Why the model stopped, in the provider's own word."""
    model: str | None = None
    """The model that answered, as the reply names it."""
    error: str = ""
    """What was wrong, empty for `ok` and `empty`. It may quote the provider: remove keys before you keep it."""


class ReplyReader:
    """Reads one reply."""

    def __init__(
        self, api: Api, *, streaming: bool, encoding: str = "identity", listeners: Sequence[Listener] = ()
    ) -> None:
        """Begin a reply.

        Args:
            api: its wire format.
            streaming: whether it is an event stream, as its Content-Type says (not the request).
            encoding: its Content-Encoding; an unknown one makes it malformed, and nothing is decoded.
            listeners: each is called with every JSON object of the reply in order: the body, or each event's
                data. What they raise comes out of `feed` and `finish`.
        """
        self._streaming = streaming
        self._listeners = tuple(listeners)
        self._follower = FOLLOWERS[api]()
        self._parser = SseParser()
        self._body = bytearray()
        self._decoder: Decoder | None = None
        self._unreadable = ""
        self._malformed = ""
        try:
            self._decoder = decoder_of(encoding)
        except BrokenEncodingError as error:
            self._unreadable = str(error)

    def feed(self, data: bytes) -> bytes:
        """Read on.

        Args:
            data: the next bytes as the provider sent them, maybe compressed.

        Returns:
            What they are decoded, which may be nothing yet. Once the encoding is broken (or if it was never known)
            nothing more can be decoded, and the result is empty.
        """
        if self._decoder is None:
            return b""
        try:
            decoded = self._decoder.feed(data)
        except BrokenEncodingError as error:
            self._give_up(str(error))
            return b""
        if not self._unreadable:
            self._read(decoded)
        return decoded

    def finish(self, *, complete: bool) -> Metered:
        """Say what the reply was.

        Args:
            complete: whether its transport ended properly; False: the connection broke.
        """
        complete = complete and self._decoder is not None and self._decoder.whole()
        if not self._unreadable:
            if self._streaming:
                self._last_event()
            else:
                self._whole_body(complete=complete)
        if self._unreadable:
            # How much could be read before it broke depends on how the bytes were cut, so none of it counts.
            return Metered("malformed", error=self._unreadable)
        ending, error = self._ending()
        seen = self._follower
        return Metered(ending, seen.tokens, seen.cost, seen.stop_reason, seen.model, error)

    def _ending(self) -> tuple[Ending, str]:
        if self._follower.failure:
            return self._follower.failure
        if self._malformed:
            return "malformed", self._malformed
        if not self._follower.ended:
            return "dropped", "the reply broke off before its end"
        return ("ok" if self._follower.said else "empty"), ""

    def _give_up(self, why: str) -> None:
        self._unreadable, self._decoder = why, None
        self._body.clear()

    def _read(self, decoded: bytes) -> None:
        if not self._streaming:
            if len(self._body) + len(decoded) > MAX_BODY:
                self._unreadable = f"the reply is larger than {MAX_BODY} bytes"
                self._body.clear()
            else:
                self._body += decoded
            return
        try:
            events = self._parser.feed(decoded)
        except EventTooLargeError as error:
            self._unreadable = str(error)
            return
        for event in events:
            self._event(event)

    def _event(self, event: SseEvent) -> None:
        if event.data.startswith(DONE):
            self._follower.ended = True
        elif event.data.strip() and event.event != "ping":
            data = _json_object(event.data)
            if data is None:
                self._malformed = self._malformed or "an event is no JSON object"
            else:
                self._object(data, name=event.event)

    def _object(self, data: JsonObject, *, name: str) -> None:
        self._follower.event(data)
        if name == "error" and not self._follower.failure:
            # an error in no shape that is known
            self._follower.fail(as_object(data.get("error")) or data)
        self._tell(data)

    def _last_event(self) -> None:
        """The event without its blank line: whole for a server that saves it, half where the stream was cut."""
        event = self._parser.finish()
        if event and (event.data.startswith(DONE) or _json_object(event.data) is not None):
            self._event(event)

    def _whole_body(self, *, complete: bool) -> None:
        data = _json_object(self._body)
        if data is not None:
            if not self._follower.body(data):
                self._malformed = "the body is no reply of this wire format"
            self._tell(data)
        elif complete:
            self._malformed = "the body is no JSON object"

    def _tell(self, data: JsonObject) -> None:
        for listener in self._listeners:
            listener(data)


def _json_object(text: str | bytearray) -> JsonObject | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
