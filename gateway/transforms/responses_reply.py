"""The bytes of a chat/completions reply as those of a responses API reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.metering.sse import SseEvent, SseParser
from gateway.transforms.responses_events import BrokenReplyError, Event, ResponseWriter

_DONE = "[DONE]"


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
        return self._convert(self._parser.feed(data))

    def finish(self) -> bytes:
        """The rest, after the provider's last bytes. A stream that broke off before its end has none."""
        if not self._streaming:
            return self._whole()
        last = self._parser.finish()
        rest = self._convert([last] if last else [])
        if self._writer.finish_reason and not self._writer.ended:
            rest += _written(self._writer.end())
        return rest

    def _convert(self, events: Iterable[SseEvent]) -> bytes:
        return b"".join(self._convert_event(event.data) for event in events if not self._writer.ended)

    def _convert_event(self, data: str) -> bytes:
        if data == _DONE:
            return _written(self._writer.end()) if self._writer.finish_reason else b""
        try:
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise BrokenReplyError("the provider's reply holds an event that is no object")
            if chunk.get("error"):
                return _written([self._writer.fail(*_error(chunk["error"]))])
            return _written(list(self._writer.take(chunk)))
        except json.JSONDecodeError as error:
            return _written([self._writer.fail("server_error", f"the provider's reply is not JSON: {error}")])
        except BrokenReplyError as error:
            return _written([self._writer.fail("server_error", str(error))])

    def _whole(self) -> bytes:
        try:
            body = json.loads(self._body)
        except ValueError:
            return bytes(self._body)
        if not isinstance(body, dict) or not body.get("choices"):
            return bytes(self._body)
        for _event in (*self._writer.take(body), *self._writer.end()):
            pass
        return json.dumps(self._writer.response).encode()


def _written(events: Iterable[Event]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _error(error: Any) -> tuple[str, str]:
    """The code and the text of an error inside a stream."""
    if not isinstance(error, Mapping):
        return "server_error", str(error)
    return str(error.get("code") or "server_error"), str(error.get("message") or error)
