"""The canonical form of JSON, whose digest identifies a value: a manifest, a runtime, the tools of a request."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any


def canonical_json(value: Any) -> bytes:
    """The canonical form of a JSON value: equal values give equal bytes, whatever the order of their keys.

    Keys are sorted by code point, numbers are as in Python's `repr`, and text is UTF-8, with escapes only where JSON
    requires them. It is indented for readers. A manifest's file has this form, so that its digest is that of its file.

    Raises:
        ValueError: a number is not finite, which JSON can't express.
    """
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "surrogatepass")


def canonical_digest(value: Any) -> str:
    """The SHA-256 of a value's canonical form, in hexadecimal (raises ValueError)."""
    return sha256(canonical_json(value)).hexdigest()
