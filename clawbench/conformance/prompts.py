"""Prompts that are hard to hand over."""

from __future__ import annotations

import random

_PLANES = [
    (0x20, 0x7E),
    (0xA1, 0x7FF),
    (0x800, 0xD7FF),
    (0xE000, 0xFFFF),
    *((plane << 16, (plane << 16) | 0xFFFF) for plane in range(1, 17)),
]
_HEAD = (
    "--help -c /etc/passwd\n$(touch /testbed/pwned) `id` ${HOME} \"'\\\\ \\n\n"
    "\r\n\t\x01\x7f%s {{issue}} [bold]x[/] @file:/etc/passwd\n"
)
_TAIL = "| \n"


def hard_prompt(size: int, token: str) -> str:
    """Text of so many bytes in UTF-8: a leading dash, quotes, substitutions, odd line ends, every Unicode plane.

    It ends as no text ends by chance: whether a claw takes off blanks would else not be seen.

    Args:
        size: at least a few hundred.
        token: words that are in it, by which it is known.
    """
    rng = random.Random(size)  # noqa: S311 - the same text each time
    text = f"{_HEAD}{token}\n"
    parts = [text]
    length = len(text.encode())
    while length < size - 80:
        part = "".join(chr(rng.randint(*rng.choice(_PLANES))) for _ in range(16))
        parts.append(part)
        length += len(part.encode())
    return "".join(parts) + "x" * (size - length - len(_TAIL)) + _TAIL
