"""How an answer's bytes are put on the wire: cut up, kept alive, and what may go wrong with them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from support.dialects import speaking
from support.dialects.speaking import DONE, Spoken


@dataclass(frozen=True)
class Delivery:
    """How answers are sent."""

    sizes: tuple[int, ...] = ()
    """The lengths of the pieces, in turn and again; empty: one piece per event."""
    pause: float = 0.0
    """Seconds between two pieces."""
    alive: bool = False
    """Whether comments (or empty lines) come before and between the events, in the dialect's way."""
    done: bool = True
    """Whether a chat stream ends with [DONE]."""
    usage: bool = True
    """Whether replies tell their usage at all."""


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with one answer; with nothing set, nothing."""

    status: int | None = None
    message: str = "Something went wrong."
    headers: Mapping[str, str] = field(default_factory=dict)
    event: int | None = None
    """A status that is told inside a stream of status 200, after its first events."""
    cut: int | None = None
    """The number of the body's bytes after which the connection breaks; 0: there is no answer at all."""
    half: bool = False
    """Whether the body, or an event of a stream, ends in good order but in the middle of its JSON."""
    echo: frozenset[str] = frozenset()
    """Where the key is told back: `header`, `body` (the reply's text), `error` (the error's text)."""


def prepare(
    delivery: Delivery, spoken: Spoken, trouble: Trouble, *, stream: bool
) -> tuple[list[bytes], dict[str, str]]:
    """The pieces to be written, and the answer's headers.

    Args:
        delivery: how.
        spoken: what.
        trouble: what goes wrong with it.
        stream: whether the request asks for a stream.
    """
    if stream:
        events = _stream(delivery, spoken, trouble)
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    else:
        body = json.dumps(spoken.body(), ensure_ascii=False).encode()
        idle = [spoken.dialect.idle] * 3 if delivery.alive and spoken.dialect.idle else []
        events = [*idle, body[: len(body) // 2] if trouble.half else body]
        headers = {"Content-Type": "application/json"}
    return list(cut(events, delivery.sizes)), headers


def _stream(delivery: Delivery, spoken: Spoken, trouble: Trouble) -> list[bytes]:
    events = [event for event in spoken.events() if delivery.done or event != DONE]
    if trouble.event:
        error = speaking.error_event(spoken.dialect, spoken.api, spoken.model, trouble.event, trouble.message)
        events = [*events[:2], error]
    if trouble.half:
        events = [*events[:2], events[2][: len(events[2]) // 2] + b"\n\n"]
    if delivery.alive and spoken.dialect.comment:
        events = [piece for event in events for piece in (spoken.dialect.comment, event)]
    return events


def cut(events: Iterable[bytes], sizes: tuple[int, ...]) -> Iterator[bytes]:
    """The same bytes in pieces of these sizes, wherever that falls."""
    if not sizes:
        yield from (event for event in events if event)
        return
    whole, start = b"".join(events), 0
    for size in itertools.cycle(sizes):
        if start >= len(whole):
            return
        yield whole[start : start + size]
        start += size
