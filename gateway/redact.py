"""No key leaves with a reply: it is found in what the provider sent, wherever a chunk ends, and taken out.

A plain reply goes on with asterisks in the key's place, as many as it has characters, so that no length changes. A
compressed one can't be mended so; `KeyFinder` tells that the key is complete before the piece is passed on.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

from gateway.metering.decoding import decoder_of

SHORTEST = 4
"""Characters: what is shorter is no secret, and would tear holes into any text."""


class KeyFoundError(ValueError):
    """A reply that can't be mended holds a key."""


def forms(secrets: Iterable[str]) -> list[bytes]:
    """The keys as they may stand in a reply: plain, in JSON, in an address, in Base64. The longest come first."""
    found = set()
    for secret in secrets:
        if len(secret) >= SHORTEST:
            plain = json.dumps(secret)[1:-1]
            found |= {secret.encode(), plain.encode(), plain.replace("/", "\\/").encode()}
            found |= {quote(secret).encode(), quote(secret, "").encode(), b64encode(secret.encode())}
    return sorted(found, key=lambda form: (-len(form), form))


def mask(text: str, secrets: Iterable[str]) -> str:
    """A text with asterisks in place of every key."""
    return mask_bytes(text.encode("utf-8", "surrogatepass"), secrets).decode("utf-8", "surrogatepass")


def mask_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """The same for bytes."""
    for form in forms(secrets):
        data = data.replace(form, b"*" * len(form))
    return data


class KeyMask:
    """Takes keys out of a stream of bytes. Only an end that may begin a key is held back."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = forms(secrets)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What may go on."""
        data = self._masked(self._held + data)
        held = _begun(data, self._forms)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def finish(self) -> bytes:
        """What was held back; nothing follows that could make it a key."""
        held, self._held = self._held, b""
        return held

    def _masked(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form, b"*" * len(form))
        return data


class KeyFinder:
    """Looks for keys in compressed bytes."""

    def __init__(self, secrets: Iterable[str], encoding: str) -> None:
        """Begin (raises BrokenEncodingError for an encoding that can't be read).

        Args:
            secrets: the keys.
            encoding: a Content-Encoding header's value.
        """
        self._forms = forms(secrets)
        self._decoder = decoder_of(encoding)
        self._end = b""

    def feed(self, data: bytes) -> bytes:
        """The same bytes, which may go on.

        Raises:
            KeyFoundError: a key is complete with this piece.
            BrokenEncodingError: it can't be told what this piece holds.
        """
        seen = self._end + self._decoder.feed(data)
        if any(form in seen for form in self._forms):
            raise KeyFoundError("the reply, compressed, held the provider's key")
        held = _begun(seen, self._forms)
        self._end = seen[len(seen) - held :]
        return data

    def finish(self) -> bytes:
        """Nothing is held back."""
        return b""


def _begun(data: bytes, secrets: list[bytes]) -> int:
    """The length of the longest end of the data that begins a key."""
    longest = len(secrets[0]) - 1 if secrets else 0
    for length in range(min(longest, len(data)), 0, -1):
        end = data[len(data) - length :]
        if any(secret.startswith(end) for secret in secrets):
            return length
    return 0
