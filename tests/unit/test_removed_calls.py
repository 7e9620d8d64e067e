"""A model's call of a removed tool reaches the claw under a name that it does not know; the rest is unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.case_models import Api, TokenCounts
from gateway.chat_wire import Reply, ToolCall, chunks, completion, sse
from gateway.removed_calls import UNKNOWN_TOOL, CallRenamer

REMOVED = ("cron", "spawn", "exec", "send_session_message")
PASSED = ("exec_session", "read_file", "shell")
USAGE = TokenCounts(input=1, output=1)


def filtered(api: Api, pieces: Sequence[bytes], removed: Sequence[str] = REMOVED) -> bytes:
    reply = CallRenamer(api, removed, PASSED)
    return b"".join([*map(reply.feed, pieces), reply.finish()])


def events(body: bytes) -> list[Any]:
    data = re.findall(rb"^data: (.*?)\r?$", body, re.MULTILINE)
    return [json.loads(line) for line in data if line != b"[DONE]"]


def called(body: bytes) -> list[str]:
    """The names that a client of chat/completions reads from a stream, call by call."""
    names: dict[tuple[int, int], str] = {}
    for event in events(body):
        for choice in event["choices"]:
            for call in choice["delta"].get("tool_calls", []):
                place = choice["index"], call["index"]
                names[place] = names.get(place, "") + call.get("function", {}).get("name", "")
    return list(names.values())


def delta(number: int = 0, **call: Any) -> bytes:
    return sse(json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": number, **call}]}}]}))


def named(name: str, number: int = 0, **more: Any) -> bytes:
    return delta(number, function={"name": name, "arguments": ""}, **more)


ARGUMENTS = delta(function={"arguments": "{}"})
END = sse(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})) + sse("[DONE]")


def stream(name: str) -> bytes:
    reply = Reply("I do it.", ToolCall(name, '{"a": 1}', 0))
    return b"".join(sse(json.dumps(chunk)) for chunk in chunks("m", reply, USAGE, with_usage=True)) + sse("[DONE]")


names = st.sampled_from([*REMOVED, *PASSED, "cro", "cron_list", "x"])


def cut(body: bytes, places: Sequence[int]) -> list[bytes]:
    at = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *at], [*at, len(body)], strict=True)]


@given(names, st.lists(st.integers(min_value=0), max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_calls_in_a_stream_are_renamed_however_it_is_cut(name: str, places: list[int], end: bytes) -> None:
    body = stream(name).replace(b"\n", end)
    out = filtered("chat", cut(body, places))
    if name not in REMOVED:
        assert out == body
        return
    (known,) = called(out.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    assert known == UNKNOWN_TOOL
    as_it_was = out.replace(UNKNOWN_TOOL.encode(), name.encode())
    assert as_it_was == body, "nothing else is changed"


@given(st.lists(st.tuples(names, st.lists(st.integers(0, 20), max_size=3)), min_size=1, max_size=4))
def test_names_in_pieces_are_put_together(calls: list[tuple[str, list[int]]]) -> None:
    body, wanted = [], []
    for number, (name, places) in enumerate(calls):
        body += [named(piece.decode(), number) for piece in cut(name.encode(), places) if piece]
        body.append(delta(number, function={"arguments": "{}"}))
        wanted.append(UNKNOWN_TOOL if name in REMOVED else name)
    whole = b"".join([*body, END])
    out = filtered("chat", [whole])
    assert called(out) == wanted
    if all(name not in REMOVED for name, _ in calls):
        assert out == whole


def test_a_repeated_name_is_renamed_each_time() -> None:
    out = filtered("chat", [named("cron"), named("cron"), ARGUMENTS, named("cron"), END])
    assert b'"cron"' not in out
    assert UNKNOWN_TOOL in out.decode()


def test_calls_at_the_same_index_are_distinguished_by_id_and_name() -> None:
    by_id = filtered("chat", [named("read_file", id="1"), named("cron", id="2"), END])
    assert b'"cron"' not in by_id
    assert b'"read_file"' in by_id
    by_name = filtered("chat", [named("read_file"), named("cron"), END])
    assert b'"cron"' not in by_name


def test_an_event_is_held_back_only_until_its_name_is_known() -> None:
    reply = CallRenamer("chat", REMOVED, PASSED)
    text = sse(json.dumps({"choices": [{"index": 0, "delta": {"content": "x"}}]}))
    assert reply.feed(text) == text
    assert reply.feed(named("read_file")) == named("read_file")
    assert reply.feed(named("cron", 1)) == b""
    assert reply.feed(b": still there\n\n") == b""
    assert UNKNOWN_TOOL.encode() in reply.feed(delta(1, function={"arguments": "{}"}))
    assert reply.feed(named("exec_s", 2)) == named("exec_s", 2)
    assert list(reply.renamed) == ["cron"]


def test_an_incomplete_stream_is_passed_on() -> None:
    for body in (stream("shell")[:-30], named("cro"), b"data: {", b"\n", b""):
        assert filtered("chat", [body]) == body
    half = filtered("chat", [named("cron").rstrip()])
    assert called(half) == [UNKNOWN_TOOL], "clients that read by lines take it for an event"


def test_calls_in_a_whole_body_are_renamed() -> None:
    reply = Reply("I do it.", ToolCall("cron", "{}", 0))
    body = json.dumps(completion("m", reply, USAGE), indent=1).encode()
    out = json.loads(filtered("chat", [b"\n ", body[:7], body[7:]]))
    (call,) = out["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": UNKNOWN_TOOL, "arguments": "{}"}
    call["function"]["name"] = "cron"
    assert out == json.loads(body)
    fine = body.replace(b'"cron"', b'"shell"')
    assert filtered("chat", [b"\n ", fine]) == b"\n " + fine
    broken = b'{"choices": [{"message"'
    assert filtered("chat", [broken]) == broken
    deep = b"[" * 100_000
    assert filtered("chat", [deep]) == deep


@pytest.mark.parametrize("spelt", ["Cron", " cron", "SEND-session-message"])
def test_other_spellings_of_a_removed_tool_are_renamed(spelt: str) -> None:
    assert called(filtered("chat", [stream(spelt)])) == [UNKNOWN_TOOL]


def test_a_passed_tool_with_a_similar_name_is_not_renamed() -> None:
    body = stream("Cron")
    reply = CallRenamer("chat", ["cron"], ["Cron"])
    assert reply.feed(body) + reply.finish() == body


def test_the_older_api_and_custom_tools() -> None:
    old = {"choices": [{"index": 0, "delta": {"function_call": {"name": "cron", "arguments": ""}}}]}
    (event,) = events(filtered("chat", [sse(json.dumps(old))]))
    assert event["choices"][0]["delta"]["function_call"]["name"] == UNKNOWN_TOOL
    call = {"type": "custom", "custom": {"name": "cron", "input": ""}}
    body = json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}).encode()
    (choice,) = json.loads(filtered("chat", [body]))["choices"]
    assert choice["message"]["tool_calls"][0]["custom"]["name"] == UNKNOWN_TOOL


def responses(name: str) -> list[dict[str, Any]]:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": "{}"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "cron"}]}
    return [
        {"type": "response.created", "response": {"id": "r", "output": [], "tools": []}},
        {"type": "response.output_item.added", "output_index": 1, "item": item | {"arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "name": name, "arguments": "{}"},
        {"type": "response.output_item.done", "output_index": 1, "item": item},
        {"type": "response.completed", "response": {"id": "r", "output": [said, item], "name": "cron"}},
    ]


def messages(name: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    return [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "cron"}},
        {"type": "content_block_start", "index": 1, "content_block": block},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]


def written(shape: list[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {event['type']}\n".encode() + sse(json.dumps(event)) for event in shape)


@pytest.mark.parametrize(("api", "shape"), [("responses", responses), ("messages", messages)])
def test_the_other_apis_in_streams(api: Api, shape: Any) -> None:
    assert filtered(api, [written(shape("cron"))]) == written(shape(UNKNOWN_TOOL))
    assert filtered(api, [written(shape("shell"))]) == written(shape("shell"))


def test_the_other_apis_in_whole_bodies() -> None:
    whole = responses("cron")[-1]["response"]
    assert (
        json.loads(filtered("responses", [json.dumps(whole).encode()])) == responses(UNKNOWN_TOOL)[-1]["response"]
    )
    use = {"type": "tool_use", "id": "t", "name": "cron", "input": {"name": "cron"}}
    body = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "cron"}, use]}
    out = json.loads(filtered("messages", [json.dumps(body).encode()]))
    assert out["content"][1] == use | {"name": UNKNOWN_TOOL}
    assert out["content"][0] == body["content"][0]


@given(st.binary(max_size=200), st.sampled_from(["chat", "responses", "messages"]))
def test_bytes_that_are_not_a_reply_pass(body: bytes, api: Api) -> None:
    assert filtered(api, [body[:9], body[9:]]) == body
