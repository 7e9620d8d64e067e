"""Counts tokens as a provider does: the same request always costs the same, and prefixes are cached.

A token is four bytes of UTF-8, the usual rule of thumb; nobody is billed by this, so no tokenizer is needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

BYTES_PER_TOKEN = 4


def count(text: str) -> int:
    """A text's number of tokens: a quarter of its UTF-8 length, rounded up."""
    # a JSON string may hold half a surrogate pair
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


class PromptCache:
    """The prompts that one case has sent: what a provider would find in its cache.

    As with providers, tools come before messages, so other tools make another prefix.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def measure(self, tools: object, messages: Sequence[dict[str, Any]]) -> tuple[int, int]:
        """Count a prompt and remember it; all its tokens, and those of its longest prefix that was seen before."""
        total = cached = 0
        prefix = b""
        for unit in _units(tools, messages):
            total += count(unit)
            prefix = hashlib.sha256(prefix + unit.encode("utf-8", "surrogatepass")).digest()
            if prefix in self._seen:
                cached = total
            self._seen.add(prefix)
        return total, cached


def _units(tools: object, messages: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield json.dumps(tools, ensure_ascii=False, separators=(",", ":")) if tools else ""
    for message in messages:
        yield json.dumps(message, ensure_ascii=False, separators=(",", ":"))
