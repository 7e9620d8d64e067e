"""The tokens that a claw says it used, beside those that the gateway counted."""

from __future__ import annotations

from dataclasses import asdict

from adapters.base import TokenUsage
from gateway.models import TokenCounts

TOLERANCE = 0.02
"""How far the two may be apart, as a part of the gateway's count."""


def differing(told: TokenUsage | None, counted: TokenCounts) -> dict[str, tuple[int, int]]:
    """The classes of tokens in which the two are too far apart: what the claw says, what the gateway counted.

    What one of them does not know is not compared.

    Args:
        told: by the claw; None where it tells nothing.
        counted: by the gateway.
    """
    said: dict[str, int | None] = asdict(told) if told is not None else {}
    found = {}
    for name, count in counted.model_dump().items():
        claim = said.get(name)
        if claim is not None and count is not None and abs(claim - count) > TOLERANCE * count:
            found[name] = claim, count
    return found
