"""Server-sent events, cut out of a stream as it comes and put back as they were. No input or output here.

Lines may end in any of the three ways of the HTML standard (9.2.6, parsing an event stream), which is what
events of the model APIs are written in.
"""

from __future__ import annotations

import json
import re
from typing import Any

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|$)")


class Event:
    """One event, with the blank line that ends it."""

    def __init__(self, raw: bytes) -> None:
        """Read an event; what is no JSON has no content."""
        self._raw = raw
        self.content: Any = None
        """The data, where it is JSON."""
        self.is_changed = False
        """Whether the content was changed, so that it is to be written anew."""
        self.has_data = b"data:" in raw
        """False for a comment that keeps a connection alive."""
        if self.has_data:
            self.content = json_or_none(b"\n".join(text for text, _ in self._lines() if text is not None))

    def _lines(self) -> list[tuple[bytes | None, bytes]]:
        """Each line's data (None where it has none) and the line as it is."""
        lines = []
        for found in _LINE.finditer(self._raw.removeprefix(b"\xef\xbb\xbf")):
            name, colon, text = found[1].partition(b":")
            is_data = name == b"data" and colon
            lines.append((text.removeprefix(b" ") if is_data else None, found[0]))
        return lines

    def bytes(self) -> bytes:
        """The event as it came, or with the content that it has now."""
        if not self.is_changed:
            return self._raw
        lines, is_written = [], False
        for text, line in self._lines():
            if text is None:
                lines.append(line)
            elif not is_written:
                end = line[len(line.rstrip(b"\r\n")) :]
                lines.append(b"data: " + json.dumps(self.content).encode() + end)
                is_written = True
        return b"".join(lines)


class EventReader:
    """Cuts a stream into events, however its bytes come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        """The events that are whole by now."""
        seen = max(0, len(self._bytes) - 3)  # a blank line may have begun in what was there
        self._bytes += data
        events, start = [], 0
        for found in _END.finditer(self._bytes, seen):
            events.append(Event(bytes(self._bytes[start : found.end()])))
            start = found.end()
        del self._bytes[:start]
        return events

    def rest(self) -> Event | None:
        """What came after the last whole event: clients that read by lines take it for one."""
        return Event(bytes(self._bytes)) if self._bytes else None


def json_or_none(text: bytes) -> Any:
    """What a text holds, None where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
