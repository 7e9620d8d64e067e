"""Cassettes: recorded replies come back, keys do not, and an unrecorded request says where it differs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.cassette import CassetteError, Player, Recorder, ReplayDiffError
from gateway.exchange import Exchange

CHAT = "/v1/chat/completions"
KEY = "sk-planted-0123456789abcdef"
json_texts = st.text(st.characters(), max_size=10)  # halves of surrogate pairs as well
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | json_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cassettes") / "created" / "case.jsonl"


def record(path: Path, *requests: Any, secrets: tuple[str, ...] = (), **reply: Any) -> None:
    """Record requests; the reply to each is its number."""
    recorder = Recorder(path, secrets)
    for number, request in enumerate(requests):
        given: dict[str, Any] = {"headers": {}, "chunks": [str(number).encode()]} | reply
        exchange = Exchange("POST", CHAT, api="chat", status=given.pop("status", 200))
        recorder.record(exchange, json.dumps(request).encode(), **given)


def answer(player: Player, request: Any, path: str = CHAT) -> bytes:
    return b"".join(player.answer(path, request).chunks)


def difference(path: Path, request: Any, at: str = CHAT) -> str:
    with pytest.raises(ReplayDiffError) as raised:
        Player(path).answer(at, request)
    return str(raised.value)


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    """A conversation in which the claw and the model speak in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return {"model": "m", "messages": messages, **more}


@given(json_values, st.lists(st.binary(max_size=20), max_size=4), st.booleans())
@settings(deadline=None)
def test_what_was_recorded_comes_back(path: Path, request: Any, chunks: list[bytes], complete: bool) -> None:
    headers = {"Content-Type": "text/event-stream", "Retry-After": "3", "X-Request-Id": "r", "Set-Cookie": "c"}
    record(path, request, status=418, headers=headers, chunks=chunks, complete=complete)
    reply = Player(path).answer(CHAT, json.loads(json.dumps(request)))
    assert (reply.api, reply.status, reply.complete) == ("chat", 418, complete)
    assert list(reply.chunks) == chunks
    assert reply.headers == {"content-type": "text/event-stream", "retry-after": "3"}


@given(st.data())
@settings(deadline=None)
def test_no_key_is_kept_wherever_it_was_cut(path: Path, data: st.DataObject) -> None:
    body = f"data: {KEY} and \u00e9 {KEY}\n\n".encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    chunks = [body[one:two] for one, two in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    request = chat(f"my key is {KEY}", user=KEY)
    headers = {"Authorization": f"Bearer {KEY}", "X-Echo": KEY, "Content-Type": f"text/plain; key={KEY}"}
    record(path, request, secrets=(KEY,), chunks=chunks, headers=headers)
    assert KEY not in path.read_text()
    reply = Player(path).answer(CHAT, json.loads(json.dumps(request).replace(KEY, "*" * len(KEY))))
    assert [len(chunk) for chunk in reply.chunks] == [len(chunk) for chunk in chunks]
    assert KEY.encode() not in b"".join(reply.chunks)


def test_the_file_is_one_line_per_exchange_and_begins_anew(path: Path) -> None:
    record(path, chat("a"))
    record(path, chat("a"), chat("b"))
    lines = path.read_text().splitlines()
    assert [json.loads(line)["request"] for line in lines] == [chat("a"), chat("b")]
    assert Player(path).model == "m"


def test_an_incomplete_last_line_is_left_out(path: Path) -> None:
    record(path, chat("a"), chat("b"))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        player = Player(path)
        assert answer(player, chat("a")) == b"0"
        with pytest.raises(ReplayDiffError):
            player.answer(CHAT, chat("b"))


def test_a_file_that_is_not_a_cassette_is_refused_with_its_line(path: Path) -> None:
    record(path, chat("a"))
    for line in ("nonsense", "[]", '{"api": "chat"}'):
        path.write_text(path.read_text().splitlines()[0] + f"\n{line}\n")
        with pytest.raises(CassetteError, match="line 2 does not belong to a cassette"):
            Player(path)


def test_a_request_that_was_recorded_several_times_gets_its_replies_in_turn(path: Path) -> None:
    record(path, chat("a"), chat("b"), chat("a"))
    for _ in range(2):
        player = Player(path)
        given = [answer(player, chat(text)) for text in "aababa"]
        assert given == [b"0", b"2", b"1", b"2", b"1", b"2"]


def replaced(one: str, other: str) -> Callable[[str], str]:
    return lambda text: text.replace(one, other)


UNREPEATABLE = [
    ("[2026-11-30 01:26:49 +00:00] You are", "[2026-12-01 13:05:01 +00:00] You are"),
    ("[Mon 2026-11-30 01:27 UTC] You are", "[Tue 2026-12-01 23:59 UTC] You are"),
    ("Today: 2026-11-30 Mon\n", "Today: 2026-12-01 Tue\n"),
    ("Current date: 2026-11-30\nTime zone", "Current date: 2027-01-01\nTime zone"),
    ("started: Monday, November 30, 2026\nModel", "started: Friday, May 1, 2026\nModel"),
    ("at 2026-11-30T01:26:49.123456Z.", "at 2026-11-30T02:00:00.5Z."),
    ("sessionId=8e8d0025-1bd1-40ec-aa30-90ad1c16b1e0 |", "sessionId=00000000-1bd1-40ec-aa30-90ad1c16b1e0 |"),
    ("Host: Linux (6.18.44-fc-v657)\n", "Host: Linux (5.15.0-91-generic)\n"),
    ("os=Linux 6.18.44-fc-v657 (x64)", "os=Linux 5.4.0 (x64)"),
    ("-rw-r--r-- 1 root root 5 Nov 30 01:26 a.py", "-rw-r--r-- 1 root root 5 Dec  1 13:05 a.py"),
    ("Date:   Mon Nov 30 01:26:49 2026 +0000", "Date:   Tue Dec 1 13:05:00 2026 +0000"),
    ("3 passed in 0.12s", "3 passed in 11.40s"),
    ("/tmp/tmpa1b2c3d_/x and /tmp/tmp.Ab3dEf9xYz", "/tmp/tmp_9x8y7z0/x and /tmp/tmp.0000000000"),
    ("http://127.0.0.1:43121/v1", "http://127.0.0.1:8080/v1"),
    ("<object at 0x7f389b9844a0>", "<object at 0x7fe1230004a0>"),
]


@pytest.mark.parametrize(("recorded", "sent"), UNREPEATABLE)
def test_what_no_claw_repeats_is_not_compared(path: Path, recorded: str, sent: str) -> None:
    record(path, chat(recorded))
    assert answer(Player(path), chat(sent)) == b"0"


@pytest.mark.parametrize(
    ("recorded", "sent"),
    [
        ("run 4:30 am on the 1st", "run 4:45 am on the 1st"),
        ("at most 30000 ms", "at most 10000 ms"),
        ("Maximum wait: 10s", "Maximum wait: 20s"),
        ("version 0.19.0", "version 0.19.1"),
        ("the template of May", "the template of June"),
        ("tmpdir, temporary", "tmpname, temporary"),
        ("commit 1a2b3c4", "commit 1a2b3c5"),
        ("issue 2026", "issue 2027"),
    ],
)
def test_what_a_claw_repeats_is_compared(path: Path, recorded: str, sent: str) -> None:
    record(path, chat(recorded))
    assert "messages[0].content" in difference(path, chat(sent))


def called(*ids: str, results: tuple[str, ...] = ()) -> dict[str, Any]:
    calls = [{"id": name, "type": "function", "function": {"name": "exec", "arguments": "{}"}} for name in ids]
    told = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in results or ids]
    return {"model": "m", "messages": [{"role": "assistant", "content": "", "tool_calls": calls}, *told]}


def test_ids_of_calls_may_differ(path: Path) -> None:
    record(path, called("a", "b"))
    assert answer(Player(path), called("x", "y")) == b"0"
    # but which result is whose is compared
    assert "messages[1].tool_call_id" in difference(path, called("x", "y", results=("y", "x")))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (
            lambda body: body["messages"][0].update(content="a long text; the end is new"),
            "messages[0].content, character",
        ),
        (lambda body: body["messages"].append({"role": "user", "content": "more"}), "messages[2], which is new"),
        (lambda body: body["messages"].pop(), "messages[1], which is missing"),
        (lambda body: body["tools"][1]["function"].update(name="other"), "tools[1].function.name"),
        (lambda body: body["tools"].pop(0), "tools[0].function.name"),
        (lambda body: body.update(temperature=0.5), "temperature: recorded was 0.1, sent was 0.5"),
        (lambda body: body.pop("temperature"), "temperature, which is missing; recorded was 0.1"),
        (lambda body: body.update(seed=1), "seed, which is new: 1"),
        (lambda body: body.update(stream=None), "stream: recorded was true, sent was null"),
        (lambda body: body.update(model="other"), "model, character 1"),
    ],
)
def test_the_first_difference_is_named(path: Path, change: Callable[[Any], Any], where: str) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("exec", "read")]
    request = chat("a long text; the end is old", "yes", tools=tools, temperature=0.1, stream=True)
    record(path, chat("another"), request)
    changed = copy.deepcopy(request)
    change(changed)
    text = difference(path, changed)
    assert where in text
    assert "it differs from request 2 of the 2 in the cassette" in text
    assert len(text) < 500


def test_both_texts_are_shown_around_the_difference(path: Path) -> None:
    record(path, chat("x" * 5000 + " do it quickly " + "y" * 5000))
    text = difference(path, chat("x" * 5000 + " do it slowly " + "y" * 5000))
    assert "character 5008" in text
    assert "do it quickly" in text
    assert "do it slowly" in text


def test_a_request_is_compared_with_the_one_most_like_it(path: Path) -> None:
    record(path, chat("a"), chat("a", "b", "c"), chat("a", "b", "c", "d", "e"))
    assert "request 2 of the 3" in difference(path, chat("a", "b", "other"))
    assert "messages[2].content" in difference(path, chat("a", "b", "other"))


def test_an_unrecorded_path_and_an_empty_cassette(path: Path) -> None:
    record(path, chat("a"))
    assert (
        difference(path, chat("a"), "/v1/responses")
        == "the cassette holds no request to /v1/responses, of 1 in all"
    )
    record(path)
    assert "of 0 in all" in difference(path, chat("a"))
    assert Player(path).model is None


@given(json_values, json_values)
@example([1], [True])
@example({"a": 1}, {"a": 1.0})
@example({"a": None}, {})
@settings(deadline=None)
def test_equal_requests_match_and_others_name_the_difference(path: Path, one: Any, other: Any) -> None:
    record(path, one)
    player = Player(path)
    assert answer(player, one) == b"0"
    if json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        assert answer(player, other) == b"0"
    else:
        text = difference(path, other)
        assert "differs from request 1" in text
        assert "nothing that is compared" not in text
