"""What of a provider's reply is passed on to the claw: everything but keys and the names of removed tools."""

from __future__ import annotations

from gateway.redact import KeyMask
from gateway.removed_calls import CallRenamer


class ReplyFilter:
    """Filters one reply, piece by piece."""

    def __init__(self, secrets: tuple[str, ...], renamer: CallRenamer | None) -> None:
        """Begin a reply.

        Args:
            secrets: the keys to mask.
            renamer: renames the calls of removed tools; None where none was removed.
        """
        self._mask = KeyMask(secrets)
        self._renamer = renamer

    @property
    def keeps_length(self) -> bool:
        """Whether what is passed on has the length of what came."""
        return self._renamer is None

    def feed(self, chunk: bytes) -> bytes:
        """What may be passed on by now (raises EventTooLargeError)."""
        return self._mask.feed(self._renamer.feed(chunk) if self._renamer else chunk)

    def finish(self) -> bytes:
        """What is left after the last piece."""
        rest = self._mask.feed(self._renamer.finish()) if self._renamer else b""
        return rest + self._mask.finish()

    @property
    def removed_calls(self) -> tuple[str, ...]:
        """The names of the removed tools that the reply called, as the model spelt them."""
        return tuple(self._renamer.renamed) if self._renamer else ()
