"""What of a provider's reply goes on to the claw: all but keys, in the wire format that it asked for."""

from __future__ import annotations

from aiohttp import ClientResponse
from multidict import CIMultiDict

from gateway import headers, redact
from gateway.metering.reader import Metered
from gateway.removed_calls import ReplyFilter
from gateway.transforms import ReplyConverter


class Unmetered:
    """Stands in for a reader where the reply is none of a model."""

    def feed(self, _data: bytes) -> bytes:
        """Look at nothing."""
        return b""

    def finish(self, *, complete: bool) -> Metered:
        """A reply without any usage."""
        return Metered("ok" if complete else "dropped")


class Passing:
    """What of a reply goes on, piece by piece."""

    def __init__(
        self,
        secrets: tuple[str, ...],
        encoding: str,
        converter: ReplyConverter | None,
        calls: ReplyFilter | None = None,
    ) -> None:
        """Begin a reply (raises nothing; an encoding that can't be read shows with the first piece).

        Args:
            secrets: the keys.
            encoding: the reply's Content-Encoding.
            converter: turns the provider's wire format into the claw's; None where they are one.
            calls: renames the calls of removed tools; None where none was removed.
        """
        self._secrets = secrets
        self._steps = [step for step in (converter, calls) if step is not None]
        self._encoding = encoding
        self.is_compressed = not self._steps and encoding.strip().lower() not in ("", "identity")
        """Whether what goes on is compressed."""
        self._guard: redact.KeyMask | redact.KeyFinder | None = None

    def head(self, reply: ClientResponse) -> tuple[CIMultiDict[str], int | None]:
        """The headers for the claw, and the body's length where it is known."""
        shown = headers.for_claw(
            (name, redact.mask(value, self._secrets)) for name, value in reply.headers.items()
        )
        if self._steps:
            shown.popall("Content-Encoding", None)
            return shown, None
        return shown, reply.content_length

    def feed(self, chunk: bytes, decoded: bytes) -> bytes:
        """What may go on (raises KeyFoundError, BrokenEncodingError).

        Args:
            chunk: as it came.
            decoded: what the chunk adds, decoded.
        """
        if self._guard is None:
            self._guard = (
                redact.KeyFinder(self._secrets, self._encoding)
                if self.is_compressed
                else redact.KeyMask(self._secrets)
            )
        if self._steps:
            return self._through(self._guard.feed(decoded))
        return self._guard.feed(chunk)

    def finish(self) -> bytes:
        """What is left after the last piece."""
        held = self._guard.finish() if self._guard else b""
        if not self._steps:
            return held
        out = self._through(held)
        for number, step in enumerate(self._steps):
            out += self._through(step.finish(), number + 1)
        return out

    def _through(self, data: bytes, begin: int = 0) -> bytes:
        for step in self._steps[begin:]:
            data = step.feed(data)
        return data
