"""Server-sent events out of bytes, however the bytes were cut.

As the HTML standard reads an event stream ("Server-sent events", 9.2.5 and 9.2.6), but for one thing: an event
whose blank line never came is not lost, as `finish` tells it. The same bytes give the same events for any cut.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_EVENT = 64 * 1024 * 1024
"""The most bytes of one event: the last one of the responses API holds the whole reply once more."""

_BOM = b"\xef\xbb\xbf"


class EventTooLargeError(ValueError):
    """An event is larger than MAX_EVENT, so it was not gathered."""


@dataclass(frozen=True)
class SseEvent:
    """One event of a stream."""

    event: str
    """Its name; `message` where the stream gives none, as the standard has it."""
    data: str


class SseParser:
    """Reads one stream. It keeps no more of it than the event that has not ended yet."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete.

        Raises:
            EventTooLargeError: an event exceeds MAX_EVENT; the parser is of no use after that.
        """
        if not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            # the second half of a CRLF that was cut: the line has ended already
            data = data[1:]
        self._after_cr = False
        if b"\n" not in data and b"\r" not in data:
            self._hold(data)
            return []
        # bytes, unlike str, know no other line ends than the standard's: LF, CR, CRLF
        lines = (bytes(self._line) + data).splitlines(keepends=True)
        self._line.clear()
        self._after_cr = lines[-1].endswith(b"\r")
        if not lines[-1].endswith((b"\r", b"\n")):
            self._hold(lines.pop())
        return [event for line in lines if (event := self._take(line.rstrip(b"\r\n")))]

    def finish(self) -> SseEvent | None:
        """The event that the end of the stream cut off, if there is one."""
        if self._line:
            self._take(bytes(self._line))
            self._line.clear()
        return self._dispatch()

    def _hold(self, part: bytes) -> None:
        self._line += part
        self._limit(len(self._line))

    def _limit(self, more: int) -> None:
        if self._size + more > MAX_EVENT:
            raise EventTooLargeError(f"an event is larger than {MAX_EVENT} bytes")

    def _take(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        self._limit(len(line))
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        # a comment has an empty name; `id` and `retry` are for clients that reconnect
        if name not in (b"data", b"event"):
            return None
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"event":
            self._event = text
            return None
        self._size += len(line)
        self._data.append(text)
        return None

    def _dispatch(self) -> SseEvent | None:
        event = SseEvent(self._event or "message", "\n".join(self._data)) if self._data else None
        self._event, self._data, self._size = "", [], 0
        return event
