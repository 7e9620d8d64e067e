"""Removes local paths from texts that may be published."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]


def known_places() -> dict[Path, str]:
    """Folders of this machine that no artifact may name, with their replacements."""
    return {_CHECKOUT: "", Path(sys.prefix): "python", Path.home(): "~"}


def without_places(text: str, places: Mapping[Path, str]) -> str:
    """A text without known folders: a path below one is written relative to it.

    Args:
        text: any text.
        places: the folders, each with its replacement; "" leaves it out.
    """
    for place in sorted(places, key=lambda place: -len(str(place))):
        name = places[place]
        if len(place.parts) > 1:
            text = text.replace(f"{place}/", f"{name}/" if name else "")
            text = re.sub(re.escape(str(place)) + r"(?![\w.-])", name or ".", text)
    return text
