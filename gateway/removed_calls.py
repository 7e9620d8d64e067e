"""Renames a model's calls of tools that the filter removed, so that the claw answers them as an unknown tool's.

A claw knows the tools that the filter takes out of its requests, and would run one that is called. So in a reply
such a call gets a name that no claw knows.

No input or output here. A reply that calls no removed tool passes byte for byte. A call that a model writes into
its text is text: only calls in the shapes of the three APIs are recognised.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.case_models import Api
from gateway.sse import Event, EventReader, json_or_none

UNKNOWN_TOOL = "no_such_tool"
"""The name of a removed tool's call for the claw: similar to no tool's, as claws may correct a misspelt name."""


class CallRenamer:
    """Renames, in one reply, the calls of removed tools."""

    def __init__(self, api: Api, removed: Collection[str], passed: Collection[str] = ()) -> None:
        """Begin a reply.

        Args:
            api: its wire format.
            removed: the names of the tools that were taken out of the claw's requests. A call counts as one of
                them also if its name differs in case, has dashes for underscores, or blanks around it.
            passed: the names of the tools that reached the model: a call of exactly one of these names passes.
        """
        self._api = api
        self._removed = {_plain(name) for name in removed if name}
        self._passed = frozenset(passed)
        self._kind: Literal["json", "events"] | None = None
        self._json = bytearray()
        self._reader = EventReader()
        self._held: list[_Held] = []
        """Events in their order, from the first that has the beginning of a name which may be a removed tool's."""
        self._names: dict[tuple[int, int], _Name] = {}
        """The calls of a stream of chat/completions, by the indexes of choice and call."""
        self.renamed: dict[str, None] = {}
        """The names of the removed tools that the reply called, as the model spelt them, in its order."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the reply's body, which is server-sent events or JSON.

        Returns:
            what can be passed on by now: of JSON nothing before its end.

        Raises:
            EventTooLargeError: an event is too large.
        """
        if not self._removed:
            return data
        if self._kind is None:
            begin = data.lstrip(b"\xef\xbb\xbf \t\r\n")
            if not begin:
                return data  # blanks that keep a connection alive
            self._kind = "json" if begin[:1] in b"{[" else "events"
        if self._kind == "json":
            self._json += data
            return b""
        return b"".join(self._of_event(event) for event in self._reader.feed(data))

    def finish(self) -> bytes:
        """What is left to be passed on at the reply's end, even if it broke off."""
        if self._kind == "json":
            return self._of_json(bytes(self._json))
        rest = self._reader.rest()
        out = self._of_event(rest) if rest else b""
        self._settle_all_but(set())
        return out + self._release()

    def _of_json(self, body: bytes) -> bytes:
        content = json_or_none(body.removeprefix(b"\xef\xbb\xbf"))
        return json.dumps(content).encode() if self._rename_whole(content) else body

    def _of_event(self, event: Event) -> bytes:
        held = _Held(event, json_or_none(event.data) if event.data else None)
        self._held.append(held)
        if self._api == "chat" and event.data:
            self._join(held)
        elif event.data:
            held.is_changed = self._rename_whole(held.content)
        return self._release()

    def _rename_whole(self, content: Any) -> bool:
        """Rename the calls of removed tools in content that has whole names; whether there were any."""
        found = _calls_of_chat(content) if self._api == "chat" else _calls_of_items(content)
        calls = [call for call in found if self._is_removed(call.piece)]
        for call in calls:
            self._rename(call.piece, [call])
        return bool(calls)

    # -- streams of chat/completions, where a name may come in pieces, or more than once -----------------

    def _join(self, held: _Held) -> None:
        calls = list(_calls_of_chat(held.content))
        self._settle_all_but({call.place for call in calls})
        for call in calls:
            call.held = held
            name = self._names.get(call.place)
            if name is None or self._is_of_another(call, name):
                self._settle(name)
                name = self._names[call.place] = _Name()
            name.take(call)
            if name.is_settled:  # repeated
                self._rename_if_removed(name)
            elif not self._may_be_removed(name.text):
                name.is_settled = True

    def _is_of_another(self, call: _Call, name: _Name) -> bool:
        """Whether it begins a new call at the same indexes: nothing marks the end of the one before."""
        if call.id and name.id and call.id != name.id:
            return True
        if call.piece == name.text or name.text + call.piece in self._passed:
            return False
        return self._is_removed(call.piece) and not self._may_be_removed(name.text + call.piece)

    def _settle_all_but(self, places: set[tuple[int, int]]) -> None:
        for place, name in self._names.items():
            if place not in places:
                self._settle(name)

    def _settle(self, name: _Name | None) -> None:
        """No more pieces of the name will come."""
        if name is not None and not name.is_settled:
            name.is_settled = True
            self._rename_if_removed(name)

    def _rename_if_removed(self, name: _Name) -> None:
        if self._is_removed(name.text):
            self._rename(name.text, name.pieces)
        name.pieces.clear()

    def _release(self) -> bytes:
        if any(not name.is_settled for name in self._names.values()):
            return b""
        out = b"".join(held.bytes() for held in self._held)
        self._held.clear()
        return out

    # -- names ----------------------------------------------------------------------------------------

    def _is_removed(self, name: str) -> bool:
        return name not in self._passed and _plain(name) in self._removed

    def _may_be_removed(self, beginning: str) -> bool:
        return any(name.startswith(_plain(beginning)) for name in self._removed)

    def _rename(self, name: str, calls: list[_Call]) -> None:
        """Replace a name, in the first piece and in those that repeat it whole; other pieces become empty."""
        self.renamed[name] = None
        for number, call in enumerate(calls):
            call.owner["name"] = UNKNOWN_TOOL if number == 0 or call.piece == name else ""
            if call.held is not None:
                call.held.is_changed = True


@dataclass
class _Held:
    """An event that was not passed on yet."""

    event: Event
    content: Any
    """The JSON of its data."""
    is_changed: bool = False

    def bytes(self) -> bytes:
        return self.event.with_data(json.dumps(self.content)) if self.is_changed else self.event.raw


@dataclass
class _Call:
    """A call, or a part of one, that has a name or a piece of it."""

    owner: dict[str, Any]
    """The object with the key `name`."""
    place: tuple[int, int] = (0, 0)
    id: object = None
    held: _Held | None = None

    def __post_init__(self) -> None:
        self.piece: str = self.owner["name"]


@dataclass
class _Name:
    """A call's name, as far as it has come."""

    text: str = ""
    id: object = None
    pieces: list[_Call] = field(default_factory=list)
    """The pieces that were not passed on yet."""
    is_settled: bool = False

    def take(self, call: _Call) -> None:
        self.pieces.append(call)
        self.id = self.id or call.id
        if call.piece != self.text and not self.is_settled:
            self.text += call.piece


def _plain(name: str) -> str:
    """A name in the form in which claws may compare it."""
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _calls_of_chat(content: Any) -> Iterator[_Call]:
    for at, choice in enumerate(_objects_in(content, "choices")):
        for said in _objects(choice.get("message"), choice.get("delta")):
            for number, call in enumerate(_objects_in(said, "tool_calls")):
                place = (_index(choice, at), _index(call, number))
                for owner in _named(call.get("function"), call.get("custom")):
                    yield _Call(owner, place, call.get("id"))
            for owner in _named(said.get("function_call")):  # the older API, with one call at most
                yield _Call(owner, (_index(choice, at), -1))


_CALL_TYPES = frozenset({"function_call", "custom_tool_call", "response.function_call_arguments.done", "tool_use"})
_CALL_HOLDERS = ("response", "output", "item", "message", "content", "content_block")


def _calls_of_items(content: Any) -> Iterator[_Call]:
    """The calls in an event or a body of responses or messages."""
    for item in _objects(*content if isinstance(content, list) else [content]):
        if item.get("type") in _CALL_TYPES:
            yield from map(_Call, _named(item))
        for holder in _CALL_HOLDERS:
            yield from _calls_of_items(item.get(holder))


def _objects(*values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _objects_in(owner: Any, key: str) -> list[dict[str, Any]]:
    values = owner.get(key) if isinstance(owner, dict) else None
    return _objects(*values) if isinstance(values, list) else []


def _named(*owners: Any) -> list[dict[str, Any]]:
    return [owner for owner in _objects(*owners) if isinstance(owner.get("name"), str) and owner["name"]]


def _index(owner: dict[str, Any], otherwise: int) -> int:
    index = owner.get("index")
    return index if isinstance(index, int) else otherwise
