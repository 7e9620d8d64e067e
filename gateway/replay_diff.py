"""Whether two requests are equal except for what no claw repeats exactly, and where they differ.

Two runs of one case differ in the date and time in prompts, openclaw's session id, and the ids of calls: this was
found by comparing the requests of openclaw, hermes, nanobot, zeroclaw and generic. Between machines the kernel's
release differs, too. The output of commands adds durations, temporary names and ports.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import ClawbenchError

EXCERPT = 60
"""Characters of either request that a message shows around the first difference."""

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*day)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?"
_MASKED = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in {
            "uuid": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
            "date": rf"(?:\b{_DAY},? )?\b20\d{{2}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK}{_ZONE})?(?: {_DAY}\b)?",
            "day": rf"(?:\b{_DAY},? )?\b{_MONTH} {{1,2}}\d{{1,2}}"
            rf"(?:,? {{1,2}}20\d{{2}}| {_CLOCK}{_ZONE}(?: 20\d{{2}})?)",
            "duration": r"\b\d+\.\d+ ?(?:ms|s|sec|seconds)\b",
            "temporary": r"\btmp(?:\.[A-Za-z0-9]{6,10}|(?=[a-z_]*\d)[a-z0-9_]{8})\b",
            "port": r"(?:\b127\.0\.0\.1|\blocalhost):\d+",
            "address": r"\b0x[0-9a-f]{8,16}\b",
            "kernel": r"\bLinux \(?\d+\.\d+\.\d+[^\s)]*",
        }.items()
    )
)
_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id"})
"""Keys whose values connect a call with its result."""
_CONVERSATIONS = ("messages", "input")
"""The keys of the conversation, which grows from request to request."""


class ReplayDiffError(ClawbenchError, LookupError):
    """A request is not in the cassette; the message says where it differs."""


@dataclass(frozen=True)
class Masked:
    """A request without what no claw repeats exactly."""

    parts: Mapping[str, Any]
    """By their place, in the order of comparison: instructions, messages, tools, everything else."""
    digest: str


class Masks:
    """Masks requests. Each repeats the conversation so far, so masked texts are cached."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def mask(self, request: Any) -> Masked:
        """The request without what no claw repeats exactly; ids become numbers in order of appearance."""
        parts = dict(_parts(self._masked(request, {})))
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return Masked(parts, digest)

    def _masked(self, value: Any, ids: dict[str, str], key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._masked(inner, ids, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._masked(inner, ids) for inner in value]
        if not isinstance(value, str):
            return value
        if key in _IDS:
            return ids.setdefault(value, f"<id {len(ids) + 1}>")
        if value not in self._texts:
            self._texts[value] = _MASKED.sub(lambda found: f"<{found.lastgroup}>", value)
        return self._texts[value]


def likeness(recorded: Masked, sent: Masked) -> int:
    """How many parts of a request are as recorded."""
    return sum(place in sent.parts and sent.parts[place] == part for place, part in recorded.parts.items())


def first_difference(recorded: Masked, sent: Masked) -> str:
    """The first place where two requests differ, with an excerpt of both."""
    for place in dict.fromkeys([*recorded.parts, *sent.parts]):
        if place not in sent.parts:
            return f"{place}, which is missing; recorded was {_excerpt(recorded.parts[place])}"
        if place not in recorded.parts:
            return f"{place}, which is new: {_excerpt(sent.parts[place])}"
        if not _same(recorded.parts[place], sent.parts[place]):
            return _difference(place, recorded.parts[place], sent.parts[place])
    return "nothing that is compared"


def _parts(request: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(request, dict):
        yield "the body", request
        return
    rest = dict(request)
    for key in ("instructions", "system"):
        if key in rest:
            yield key, rest.pop(key)
    for key in _CONVERSATIONS:
        if isinstance(rest.get(key), list):
            for index, message in enumerate(rest.pop(key)):
                yield f"{key}[{index}]", message
    if isinstance(rest.get("tools"), list):
        for index, tool in enumerate(rest.pop("tools")):
            yield f"tools[{index}]", tool
    yield from rest.items()


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; in Python, 1 equals True and 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _difference(place: str, recorded: Any, sent: Any) -> str:
    """The innermost place that differs."""
    if isinstance(recorded, dict) and isinstance(sent, dict):
        for key in dict.fromkeys([*recorded, *sent]):
            if not _same(recorded.get(key), sent.get(key)) or (key in recorded) != (key in sent):
                return _difference(f"{place}.{key}", recorded.get(key), sent.get(key))
    if isinstance(recorded, list) and isinstance(sent, list):
        for index, (one, other) in enumerate(zip(recorded, sent, strict=False)):
            if not _same(one, other):
                return _difference(f"{place}[{index}]", one, other)
    if isinstance(recorded, str) and isinstance(sent, str):
        return _text_difference(place, recorded, sent)
    return f"{place}: recorded was {_excerpt(recorded)}, sent was {_excerpt(sent)}"


def _text_difference(place: str, recorded: str, sent: str) -> str:
    pairs = enumerate(zip(recorded, sent, strict=False))
    start = next((index for index, (one, other) in pairs if one != other), min(len(recorded), len(sent)))
    before = max(0, start - EXCERPT // 2)
    return (
        f"{place}, character {start + 1}: recorded was {_excerpt(recorded[before:])}, "
        f"sent was {_excerpt(sent[before:])}"
    )


def _excerpt(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= EXCERPT else text[:EXCERPT] + "…"
