"""The bytes of a chat/completions reply as those of a responses API reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.metering.sse import EventTooLargeError, SseParser
from gateway.transforms.responses_events import BrokenReplyError, Event, ResponseWriter

_DONE = "[DONE]"
_LIMITS = frozenset({"429", "rate_limit_exceeded", "rate_limit_error"})
"""What providers call a rate limit, as an error's code or type."""


class ReplyConverter:
    """Converts one successful reply; an error's body has the same shape in both APIs and needs none."""

    def __init__(self, streaming: bool, request: Mapping[str, Any]) -> None:
        """Begin with a reply.

        Args:
            streaming: whether it is a stream of events.
            request: the request of the responses API that it answers, which a response repeats in part.
        """
        self._streaming = streaming
        self._writer = ResponseWriter(request)
        self._parser = SseParser()
        self._body = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take the provider's next bytes, decoded, and return what they make: as soon as they make any."""
        if not self._streaming:
            self._body += data
            return b""
        if self._writer.ended:
            return b""
        try:
            return b"".join(self._convert(event.data) for event in self._parser.feed(data))
        except EventTooLargeError as error:
            return self._fail(str(error))

    def finish(self) -> bytes:
        """The rest, after the provider's last bytes. A stream that broke off before its end has none."""
        if not self._streaming:
            return self._whole()
        last = self._parser.finish()
        # Without its blank line it may be half an event.
        rest = self._convert(last.data) if last and (last.data == _DONE or _read(last.data)) else b""
        return rest + self._end()

    def _convert(self, data: str) -> bytes:
        if self._writer.ended:
            return b""
        if data == _DONE:
            return self._end()
        chunk = _read(data)
        if chunk is None:
            return self._fail("the provider's reply holds an event that is no JSON object")
        if chunk.get("error"):
            return _written([self._writer.fail(*_error(chunk["error"]))])
        try:
            return _written(list(self._writer.take(chunk)))
        except BrokenReplyError as error:
            return self._fail(str(error))

    def _end(self) -> bytes:
        """The last events, if the model came to an end and they are not told yet."""
        return _written(self._writer.end()) if self._writer.finish_reason and not self._writer.ended else b""

    def _fail(self, why: str) -> bytes:
        return _written([self._writer.fail("server_error", why)])

    def _whole(self) -> bytes:
        """The whole body; one that is no reply goes on as it is, to be judged by the client."""
        body = _read(self._body)
        if body is None or not body.get("choices"):
            return bytes(self._body)
        list(self._writer.take(body))
        list(self._writer.end())
        return json.dumps(self._writer.response).encode()


def _read(text: str | bytearray) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _written(events: Iterable[Event]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _error(error: Any) -> tuple[str, str]:
    """The code and the text of an error inside a stream; the responses API has but two codes that fit."""
    told = error if isinstance(error, Mapping) else {"message": error}
    limited = str(told.get("code")) in _LIMITS or str(told.get("type")) in _LIMITS
    return "rate_limit_exceeded" if limited else "server_error", str(told.get("message") or error)
