"""Texts without the paths of this machine: what is handed around names nobody's folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def without_places(text: str, places: Mapping[Path, str]) -> str:
    """A text without known folders: what is below one is named from there.

    Args:
        text: any.
        places: what to call each folder; "" leaves it out.
    """
    for place in sorted(places, key=lambda place: -len(str(place))):
        name = places[place]
        if len(place.parts) > 1:
            text = text.replace(f"{place}/", f"{name}/" if name else "")
            text = re.sub(re.escape(str(place)) + r"(?![\w.-])", name or ".", text)
    return text
