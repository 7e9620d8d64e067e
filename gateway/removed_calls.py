"""A model's call to a tool that the filter removed: the claw answers it as it answers an unknown tool's.

A claw knows the tools that the filter takes out of its requests, and would carry out a call of one. So in a reply
such a call gets a name that no claw knows, an alias; in later requests the alias is the name again, in the call as
in what the claw says of it, so that the model reads its own words. An alias holds the name, so nothing needs to be
remembered between a reply and the next request.

No input or output here. A reply that calls no removed tool passes byte for byte. A call that a model writes into
its text is text: only calls in the shapes of the three APIs are seen.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.events import Event, EventReader, json_or_none
from gateway.models import Api

_PREFIX = "no_such_tool_"
_ALIAS = re.compile(_PREFIX + "([a-z2-7]+)_")


def alias(name: str) -> str:
    """What a removed tool's call is named for the claw: nothing that a search for similar names would take for it.

    It has no more than 64 characters, the most that names may have, where the name has at most 31 bytes.
    """
    coded = base64.b32encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=").lower()
    return f"{_PREFIX}{coded}_"


def restore(request: dict[str, Any]) -> dict[str, Any]:
    """A request in which every alias is the name again, wherever it is; the same object where there is none.

    Args:
        request: of any of the APIs, as its JSON; it is not changed.
    """
    restored: dict[str, Any] = _restored(request)
    return restored


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        text = _ALIAS.sub(_name_of, value) if _PREFIX in value else value
        return value if text == value else text
    if isinstance(value, list):
        items = [_restored(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        pairs = {key: _restored(item) for key, item in value.items()}
        return pairs if any(pairs[key] is not value[key] for key in value) else value
    return value


def _name_of(found: re.Match[str]) -> str:
    coded = found[1].upper()
    try:
        name = base64.b32decode(coded + "=" * (-len(coded) % 8)).decode("utf-8", "surrogatepass")
    except ValueError:
        return found[0]
    return name if alias(name) == found[0] else found[0]  # else it only looks like one


class ReplyFilter:
    """Renames, in one reply, the calls of removed tools."""

    def __init__(self, api: Api, removed: Collection[str], passed: Collection[str] = ()) -> None:
        """Filter a reply.

        Args:
            api: the reply's.
            removed: the names of the tools that were taken out of the claw's requests. A call counts as one of
                them also where its name is in other letters, or has dashes for underscores or blanks around it.
            passed: the names of the tools that reached the model: a call of one, as it is spelt here, passes.
        """
        self._api = api
        self._removed = {_plain(name) for name in removed if name}
        self._passed = frozenset(passed)
        self._kind: Literal["json", "events"] | None = None
        self._json = bytearray()
        self._reader = EventReader()
        self._held: list[Event] = []
        """Events, in their order, from one on that has the beginning of a name which may be a removed tool's."""
        self._names: dict[tuple[int, int], _Name] = {}
        """The calls of a stream of chat/completions, by the places of choice and call."""
        self.renamed: dict[str, None] = {}
        """The names of the removed tools that the reply called, as the model spelt them, in its order."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the reply's body, which is server-sent events or JSON, not compressed.

        Returns:
            what can be passed on by now: of JSON nothing before its end.
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
        """What is left to be passed on at the reply's end, also where it broke off."""
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
        self._held.append(event)
        if event.has_data:
            if self._api == "chat":
                self._join(event)
            else:
                event.is_changed = self._rename_whole(event.content)
        return self._release()

    def _rename_whole(self, content: Any) -> bool:
        """Rename the removed tools' calls in what has whole names; whether there were any."""
        calls = [call for call in _LOOK[self._api](content) if self._is_removed(call.piece)]
        for call in calls:
            self._rename(call.piece, [call])
        return bool(calls)

    # -- streams of chat/completions, where a name may come in pieces, or again and again ----------------

    def _join(self, event: Event) -> None:
        calls = list(_calls_of_chat(event.content))
        self._settle_all_but({call.place for call in calls})
        for call in calls:
            call.event = event
            name = self._names.get(call.place)
            if name is None or self._is_of_another(call, name):
                self._settle(name)
                name = self._names[call.place] = _Name()
            name.take(call)
            if name.is_settled:  # said again
                self._rename_if_removed(name)
            elif not self._may_be_removed(name.text):
                name.is_settled = True

    def _is_of_another(self, call: _Call, name: _Name) -> bool:
        """Whether it begins another call than the one at its place, whose end nothing tells."""
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
        """No more pieces of the name are to come."""
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
        out = b"".join(event.bytes() for event in self._held)
        self._held.clear()
        return out

    # -- names ----------------------------------------------------------------------------------------

    def _is_removed(self, name: str) -> bool:
        return name not in self._passed and _plain(name) in self._removed

    def _may_be_removed(self, beginning: str) -> bool:
        return any(name.startswith(_plain(beginning)) for name in self._removed)

    def _rename(self, name: str, calls: list[_Call]) -> None:
        """Put the alias where the name is: whole into the first piece, or into each that says it whole."""
        self.renamed[name] = None
        for number, call in enumerate(calls):
            call.owner["name"] = alias(name) if number == 0 or call.piece == name else ""
            if call.event is not None:
                call.event.is_changed = True


@dataclass
class _Call:
    """A call, or a part of one, that has a name or a piece of it."""

    owner: dict[str, Any]
    """What has the name, under `name`."""
    place: tuple[int, int] = (0, 0)
    id: object = None
    event: Event | None = None

    def __post_init__(self) -> None:
        self.piece: str = self.owner["name"]


@dataclass
class _Name:
    """A call's name, as far as it came."""

    text: str = ""
    id: object = None
    pieces: list[_Call] = field(default_factory=list)
    """Those that were not passed on yet."""
    is_settled: bool = False

    def take(self, call: _Call) -> None:
        self.pieces.append(call)
        self.id = self.id or call.id
        if call.piece != self.text and not self.is_settled:
            self.text += call.piece


def _plain(name: str) -> str:
    """A name as claws may compare it."""
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _calls_of_chat(content: Any) -> Iterator[_Call]:
    for at, choice in enumerate(_dicts(content, "choices")):
        for said in _those(choice.get("message"), choice.get("delta")):
            for number, call in enumerate(_dicts(said, "tool_calls")):
                place = (_index(choice, at), _index(call, number))
                for owner in _named(call.get("function"), call.get("custom")):
                    yield _Call(owner, place, call.get("id"))
            for owner in _named(said.get("function_call")):  # the old way, of which there is one at most
                yield _Call(owner, (_index(choice, at), -1))


def _calls_of_responses(content: Any) -> Iterator[_Call]:
    for event in _those(content):
        outputs = [item for whole in _those(event, event.get("response")) for item in _dicts(whole, "output")]
        items = [*outputs, *_those(event.get("item"))]
        calls = [item for item in items if item.get("type") in ("function_call", "custom_tool_call")]
        if event.get("type") == "response.function_call_arguments.done":
            calls.append(event)
        yield from map(_Call, _named(*calls))


def _calls_of_messages(content: Any) -> Iterator[_Call]:
    for event in _those(content):
        said = [block for whole in _those(event, event.get("message")) for block in _dicts(whole, "content")]
        blocks = [*said, *_those(event.get("content_block"))]
        yield from map(_Call, _named(*(block for block in blocks if block.get("type") == "tool_use")))


_LOOK: dict[Api, Callable[[Any], Iterator[_Call]]] = {
    "chat": _calls_of_chat,
    "responses": _calls_of_responses,
    "messages": _calls_of_messages,
}


def _those(*values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _dicts(owner: Any, key: str) -> list[dict[str, Any]]:
    values = owner.get(key) if isinstance(owner, dict) else None
    return _those(*values) if isinstance(values, list) else []


def _named(*owners: Any) -> list[dict[str, Any]]:
    return [owner for owner in _those(*owners) if isinstance(owner.get("name"), str) and owner["name"]]


def _index(owner: dict[str, Any], otherwise: int) -> int:
    index = owner.get("index")
    return index if isinstance(index, int) else otherwise
