"""The prompt that every claw gets: a template of `prompts/` with the issue's text in it.

Rendering changes nothing else: template and issue come out byte for byte, whatever is in them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

PROMPTS = Path(__file__).parents[1] / "prompts"
PLACEHOLDER = "{{issue}}"


def template_bytes(template_name: str) -> bytes:
    """A template as it is on disk.

    Args:
        template_name: A file name in `prompts/`, such as `default.txt`.

    Raises:
        FileNotFoundError: there is no such template.
        ValueError: it does not hold the placeholder exactly once.
    """
    content = (PROMPTS / template_name).read_bytes()
    if content.count(PLACEHOLDER.encode()) != 1:
        raise ValueError(f"prompts/{template_name} must hold {PLACEHOLDER} exactly once")
    return content


def render(template_name: str, issue: str) -> str:
    """The prompt for an issue; the issue's text is never searched for placeholders (raises as above)."""
    before, after = template_bytes(template_name).decode("utf-8").split(PLACEHOLDER)
    return before + issue + after


def prompt_digest(template_name: str) -> str:
    """The SHA-256 of a template, in hex, for the manifest (raises as above)."""
    return hashlib.sha256(template_bytes(template_name)).hexdigest()
