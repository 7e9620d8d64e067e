"""Masks keys in what a provider sent, wherever its bytes are cut.

A key is replaced by as many asterisks, so that no length changes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

SHORTEST = 12
"""Characters: anything shorter is no secret (a local server's `EMPTY`), and masking it would tear holes into any text."""


def forms(secrets: Iterable[str]) -> list[bytes]:
    """The keys as they may occur in a reply: plain, in JSON, in a URL, in Base64. The longest come first."""
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
    return _masked(data, forms(secrets))


class KeyMask:
    """Masks keys in a stream of bytes. It holds back only an end that may be the beginning of a key."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = forms(secrets)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The bytes that may be passed on."""
        data = _masked(self._held + data, self._forms)
        held = self._begun(data)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def finish(self) -> bytes:
        """What was held back; nothing follows that could make it a key."""
        held, self._held = self._held, b""
        return held

    def _begun(self, data: bytes) -> int:
        """The length of the longest end of the data with which a key begins."""
        longest = len(self._forms[0]) - 1 if self._forms else 0
        for length in range(min(longest, len(data)), 0, -1):
            end = data[len(data) - length :]
            if any(form.startswith(end) for form in self._forms):
                return length
        return 0


def _masked(data: bytes, keys: list[bytes]) -> bytes:
    for key in keys:
        data = data.replace(key, b"*" * len(key))
    return data
