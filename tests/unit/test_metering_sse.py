"""Event streams: the standard's rules, and no difference however the bytes are cut."""

from __future__ import annotations

import pytest
from anthropic._streaming import SSEDecoder as AnthropicDecoder
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder as OpenAiDecoder
from support.metering_world import cut

from gateway import sse
from gateway.sse import Event, EventReader, EventTooLargeError


def read(*parts: bytes) -> list[Event]:
    reader = EventReader()
    found = [event for part in parts for event in reader.feed(part)]
    last = reader.rest()
    return [*found, last] if last else found


def parse(*parts: bytes) -> list[tuple[str, str]]:
    """Name and data of the events that have data."""
    return [(event.name, event.data) for event in read(*parts) if event.data is not None]


# html.spec.whatwg.org/multipage/server-sent-events.html, 9.2.6, and its rules one by one
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10")]),
        (b": test stream\n\ndata: first event\nid: 1\n\n", [("message", "first event")]),
        (b"data:test\n\ndata: test\n\n", [("message", "test"), ("message", "test")]),
        (b"data:  two\n\n", [("message", " two")]),
        (b"data\n\ndata\ndata\n\n", [("message", ""), ("message", "\n")]),
        (b"event: add\ndata: 1\n\ndata: 2\n\n", [("add", "1"), ("message", "2")]),
        (b"event: lost\n\ndata: 2\n\n", [("message", "2")]),
        (b"\xef\xbb\xbfdata: x\n\n", [("message", "x")]),
        (b"data: x\r\rdata: y\r\n\r\ndata: z\n\r", [("message", "x"), ("message", "y"), ("message", "z")]),
        (b"event: e\r\ndata: x\r\ndata: y\r\n\r\n", [("e", "x\ny")]),
        (b"Data: no\nretry: 10\ndatas: no\n\n", []),
        (b"data: a:b: c\n\n", [("message", "a:b: c")]),
        (b"data: \xe2\x80\xa8 \xc2\x85 \x0b\x0c\n\n", [("message", "\u2028 \x85 \x0b\x0c")]),
        (b"data: \xff\n\n", [("message", "\ufffd")]),
        # unlike the standard: an event that the end of the stream cut off counts, too
        (b"data: [DONE]", [("message", "[DONE]")]),
        (b"data: [DONE]\n", [("message", "[DONE]")]),
        (b"", []),
        (b"\n\n: ping\n\n", []),
    ],
)
def test_the_rules_of_the_standard(stream: bytes, expected: list[tuple[str, str]]) -> None:
    assert parse(stream) == expected
    assert parse(*(stream[place : place + 1] for place in range(len(stream)))) == parse(stream)


LINES = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"event: x",
        b"event:",
        b": note",
        b"id: 1",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xa9",
        b"{}",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b""])
STREAMS = st.lists(st.one_of(LINES, ENDS, st.binary(max_size=4)), max_size=30).map(b"".join)


@given(stream=STREAMS, places=st.lists(st.integers(0, 400)))
def test_any_cut_gives_the_same_events(stream: bytes, places: list[int]) -> None:
    assert parse(*cut(stream, places)) == parse(stream)
    assert b"".join(event.raw for event in read(*cut(stream, places))) == stream


def test_events_that_have_ended_are_not_kept() -> None:
    reader = EventReader()
    assert len(reader.feed(b"data: x\n\n" * 1000)) == 1000
    assert reader.rest() is None


def test_other_data_in_an_event() -> None:
    event = Event(b": note\r\nevent: x\r\ndata: {\r\nid: 1\r\ndata: }\r\n\r\n")
    assert event.data == "{\n}"
    assert event.with_data("[]") == b": note\r\nevent: x\r\ndata: []\r\nid: 1\r\n\r\n"


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=12)
FIELDS = st.tuples(st.sampled_from(["data", "data", "event", "id", "", "retry"]), TEXTS)


@given(
    blocks=st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_the_official_clients_read_the_same(blocks: list[list[tuple[str, str]]], end: str) -> None:
    # they tell events without data, too, and no name where there is none
    text = "".join(end.join([*(f"{name}: {value}" for name, value in fields), "", ""]) for fields in blocks)
    ours = parse(text.encode())
    for decoder in (AnthropicDecoder(), OpenAiDecoder()):
        theirs = [(found.event or "message", found.data) for found in decoder.iter_bytes(iter([text.encode()]))]
        with_data = [any(name == "data" for name, _ in fields) for fields in blocks]
        told = [event for event in theirs if event[1]]
        assert [event for event in ours if event[1]] == told
        assert len(ours) == sum(with_data)


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    assert len(parse(b"data: " + b"x" * 900 + b"\n\n", b"data: " + b"x" * 900 + b"\n\n")) == 2
    for parts in ([b"data: " + b"x" * 1000], [b"data: xxx\n"] * 200, [b": " + b"x" * 1000 + b"\n"], [b"x"] * 1001):
        with pytest.raises(EventTooLargeError):
            parse(*parts)
