"""Server-sent events: read from a stream as its bytes arrive, written back with other data. No input or output.

As the HTML standard reads an event stream ("Server-sent events", 9.2.5 and 9.2.6), with one exception: an event
whose blank line never came is not lost, `EventReader.rest` returns it. The same bytes give the same events,
however they are cut.
"""

from __future__ import annotations

import json
import re
from typing import Any

from common.errors import ClawbenchError

MAX_EVENT = 64 * 1024 * 1024
"""The most bytes of one event: the last one of the responses API repeats the whole reply."""
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_BOM = b"\xef\xbb\xbf"


class EventTooLargeError(ClawbenchError, ValueError):
    """An event is larger than MAX_EVENT; the reader cannot be used after that."""


class Event:
    """One event, or a comment that keeps a connection alive."""

    def __init__(self, raw: bytes) -> None:
        """Read an event.

        Args:
            raw: its lines, usually with the blank line that ends it.
        """
        self.raw = raw
        self.name = "message"
        self.data: str | None = None
        """None for a comment."""
        data = []
        for line in raw.removeprefix(_BOM).splitlines():
            name, _, value = line.partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif name == b"event":
                self.name = value.removeprefix(b" ").decode("utf-8", "replace") or "message"
        if data:
            self.data = b"\n".join(data).decode("utf-8", "replace")

    def with_data(self, data: str) -> bytes:
        """The event's bytes with other data, of one line; its other lines stay as they are."""
        lines, new = [], b"data: " + data.encode()
        for line in self.raw.removeprefix(_BOM).splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            if text.partition(b":")[0] != b"data":
                lines.append(line)
            elif new:
                lines.append(new + line[len(text) :])
                new = b""
        return b"".join(lines)


class EventReader:
    """Cuts a stream into events. It keeps no more of it than the event that has not ended yet."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete.

        Raises:
            EventTooLargeError: the event that has not ended yet is too large.
        """
        seen = max(0, len(self._bytes) - 3)  # the blank line may have begun in the bytes before
        self._bytes += data
        events, start = [], 0
        for found in _BLANK_LINE.finditer(self._bytes, seen):
            events.append(Event(bytes(self._bytes[start : found.end()])))
            start = found.end()
        del self._bytes[:start]
        if len(self._bytes) > MAX_EVENT:
            raise EventTooLargeError(f"an event is larger than {MAX_EVENT} bytes")
        return events

    def rest(self) -> Event | None:
        """The event that the end of the stream cut off, if there is one."""
        return Event(bytes(self._bytes)) if self._bytes else None


def json_or_none(text: str | bytes | bytearray) -> Any:
    """The content of a JSON text; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
