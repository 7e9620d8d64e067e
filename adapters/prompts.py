"""The prompt that every claw gets: a template from `prompts/` with the issue's text in it.

Rendering changes nothing else: template and issue are in the prompt byte for byte, whatever they contain.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from adapters.base import BadOptionError

PROMPTS = Path(__file__).parents[1] / "prompts"
PLACEHOLDER = "{{issue}}"


def template_bytes(template_name: str) -> bytes:
    """A template as it is on disk.

    Args:
        template_name: a file name in `prompts/`, such as `default.txt`.

    Raises:
        FileNotFoundError: there is no such template.
        ValueError: it does not contain the placeholder exactly once.
    """
    content = (PROMPTS / template_name).read_bytes()
    if content.count(PLACEHOLDER.encode()) != 1:
        raise ValueError(f"prompts/{template_name} must contain {PLACEHOLDER} exactly once")
    return content


def render(template_name: str, issue: str) -> str:
    """The prompt for an issue; the issue's text is never searched for placeholders (raises as above)."""
    before, after = template_bytes(template_name).decode("utf-8").split(PLACEHOLDER)
    return before + issue + after


def prompt_digest(template_name: str) -> str:
    """The SHA-256 of a template, in hex, for the manifest (raises as above)."""
    return hashlib.sha256(template_bytes(template_name)).hexdigest()


def prompt_bytes(claw: str, prompt: str) -> bytes:
    """A prompt in UTF-8.

    Raises:
        BadOptionError: it contains a NUL or half of a surrogate pair, which no argument or request can contain.
    """
    if "\0" in prompt:
        raise BadOptionError(f"{claw} can't take a prompt with a NUL character in it")
    try:
        return prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadOptionError(f"{claw} can't take a prompt that is not valid Unicode: {error}") from error
