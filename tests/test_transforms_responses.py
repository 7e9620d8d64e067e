"""The responses API over chat/completions: OpenAI's own library on one end, a chat provider on the other."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import openai
import pytest
from dialects.clients import Said, ask_responses
from dialects.profiles import DASHSCOPE, DEEPSEEK, OPENAI, VLLM
from dialects.refusing import THOUGHTS
from dialects.server import MODEL, Brain, DialectServer
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from transform_world import client, commands, plain_client

from gateway.behaviours.base import Job
from gateway.transforms import ReplyConverter

NAME = "responses_to_chat"
REQUEST = {"model": MODEL, "input": "go"}
events_of = TypeAdapter[Any](ResponseStreamEvent)


@pytest.fixture(params=[VLLM, DEEPSEEK, DASHSCOPE], ids=lambda dialect: dialect.name)
def server(request: pytest.FixtureRequest) -> Iterator[DialectServer]:
    with DialectServer(request.param, brain(2)) as started:
        yield started


def brain(count: int) -> Brain:
    return Brain("commands", Job("case", "/testbed", "", commands(count)))


def after(said: Said, items: Sequence[Any]) -> list[Any]:
    """The conversation with what the model said, and its calls answered."""
    calls = [
        {"type": "function_call", "call_id": call, "name": name, "arguments": arguments}
        for call, name, arguments in said.calls
    ]
    results = [{"type": "function_call_output", "call_id": call, "output": "ok"} for call, _, _ in said.calls]
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said.text}]}
    return [*items, text, *calls, *results]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_conversation_with_tools(server: DialectServer, stream: bool) -> None:
    asked = client(server, NAME, "deepseek_reasoning_content")
    items: list[Any] = [{"role": "user", "content": "go"}]
    for turn in range(2):
        said = ask_responses(asked, MODEL, items, stream=stream, instructions="Be quick.")
        assert (said.text, said.calls[0][1]) == (f"I run step {turn + 1}.", "exec")
        assert json.loads(said.calls[0][2]) == {"command": f"echo {turn}"}
        charge = server.charges[-1]
        assert said.usage.input_tokens == charge.prompt
        assert (said.usage.output_tokens, said.usage.output_tokens_details.reasoning_tokens) in (
            (charge.output, charge.reasoning),
            (charge.output, 0),
        )
        items = after(said, items)
    assert ask_responses(asked, MODEL, items, stream=stream).calls == ()
    roles = [message["role"] for message in server.received[-1].json["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


def test_cached_tokens_are_told() -> None:
    with DialectServer(DEEPSEEK) as server:
        asked = client(server, NAME)
        told = [ask_responses(asked, MODEL, [{"role": "user", "content": "go"}], stream=True) for _ in range(2)]
        assert told[1].usage.input_tokens_details.cached_tokens == server.charges[1].cache_read > 0


def test_the_order_of_events_is_that_of_the_responses_api() -> None:
    def kinds(asked: openai.OpenAI) -> list[str]:
        tool = {"type": "function", "name": "exec", "parameters": {"type": "object"}, "strict": False}
        given: dict[str, Any] = {"model": MODEL, "input": "go", "tools": [tool], "stream": True}
        told = [event.type for event in asked.responses.create(**given)]
        return [kind for number, kind in enumerate(told) if kind != (told[number - 1] if number else "")]

    with DialectServer(OPENAI, brain(1)) as one, DialectServer(VLLM, brain(1)) as other:
        # the same provider with its own responses API, and another without one
        assert kinds(client(other, NAME)) == kinds(plain_client(one))


def deltas(*given: dict[str, Any], finish: str | None = "stop", usage: bool = True, done: bool = True) -> bytes:
    """A chat stream of these deltas."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "served"}
    told = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in given]
    if finish:
        told.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        told.append(head | {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in told] + (["[DONE]"] if done else [])
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return {"tool_calls": [{"index": index, "function": function, **more}]}


def told(stream: bytes, *, cuts: Sequence[int] = (), request: dict[str, Any] | None = None) -> list[Any]:
    """The events of the response, each read as OpenAI's library reads them."""
    converter = ReplyConverter(True, request or REQUEST)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    made = b"".join(converter.feed(stream[one:two]) for one, two in itertools.pairwise(edges))
    blocks = (made + converter.finish()).decode().split("\n\n")
    assert blocks.pop() == ""
    read = [re.fullmatch(r"event: (\S+)\ndata: (.*)", block) for block in blocks]
    assert all(match and json.loads(match[2])["type"] == match[1] for match in read)
    events = [events_of.validate_json(match[2], strict=False) for match in read if match]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


ALL = deltas(
    {"role": "assistant", "content": ""},
    {"reasoning_content": "hm, "},
    {"reasoning_content": "日本"},
    {"content": "caf"},
    {"content": "é"},
    call(0, "", id="call_a", name="exec", type="function"),
    call(0, '{"command": '),
    call(0, '"ls"}'),
    call(1, '{"command": "pwd"}', id="call_b", name="exec", type="function"),
    finish="tool_calls",
)


def test_every_kind_of_output_in_one_stream() -> None:
    events = told(ALL)
    response = events[-1].response
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    reasoning, message, *calls = response.output
    assert reasoning.content[0].text == "hm, 日本"
    assert message.content[0].text == response.output_text == "café"
    assert [(item.call_id, item.name, json.loads(item.arguments)["command"]) for item in calls] == [
        ("call_a", "exec", "ls"),
        ("call_b", "exec", "pwd"),
    ]
    assert (response.status, response.model, response.usage.total_tokens) == ("completed", "served", 10)
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert done == response.output
    # items follow each other: none begins before the last one is done
    edges = [event.type[-5:] for event in events if "output_item" in event.type]
    assert edges == ["added", ".done"] * 4


@given(st.lists(st.integers(0, len(ALL)), max_size=30))
@settings(max_examples=100, deadline=None)
def test_the_events_do_not_depend_on_how_the_bytes_were_cut(cuts: list[int]) -> None:
    assert list(map(shape, told(ALL, cuts=cuts))) == list(map(shape, told(ALL)))


def shape(event: Any) -> Any:
    """An event without the ids that are made anew each time."""
    text = re.sub(r"\b(resp|msg|rs|fc)_[0-9a-f]{48}\b", r"\1", event.model_dump_json())
    return re.sub(r'"created_at":[\d.]+', "", text)


def test_pieces_go_on_at_once() -> None:
    converter = ReplyConverter(True, REQUEST)
    first = converter.feed(b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n')
    assert b'"delta": "a"' in first


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_a_reply_that_was_cut_short_is_incomplete(finish: str, reason: str) -> None:
    last = told(deltas({"content": "half"}, finish=finish))[-1]
    assert (last.type, last.response.incomplete_details.reason) == ("response.incomplete", reason)
    assert last.response.output[0].status == "incomplete"


def test_a_refusal_is_told_as_one() -> None:
    response = told(deltas({"refusal": "I "}, {"refusal": "won't."}))[-1].response
    assert response.output[0].content[0].refusal == "I won't."


def test_a_stream_without_done_or_usage_ends_all_the_same() -> None:
    last = told(deltas({"content": "a"}, usage=False, done=False))[-1]
    assert (last.type, last.response.usage) == ("response.completed", None)


def test_a_stream_that_broke_off_does_not_end() -> None:
    stream = deltas({"content": "a"}, finish=None, usage=False, done=False)
    for cut in (len(stream), len(stream) - 30):
        assert not any("completed" in event.type or "failed" in event.type for event in told(stream[:cut]))


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b'data: {"error": {"message": "Overloaded", "code": 503}}\n\n', "Overloaded"),
        (b"data: {nothing}\n\n", "no JSON object"),
        (deltas(call(0, "{", id="a", name="x"), call(1, "{", id="b", name="x"), call(0, "}")), "after the next"),
    ],
    ids=["error", "no JSON", "calls entangled"],
)
def test_a_stream_that_fails_says_so_and_no_more(stream: bytes, message: str) -> None:
    events = told(
        deltas({"content": "a"}, finish=None, usage=False, done=False) + stream + deltas({"content": "b"})
    )
    assert events[-1].type == "response.failed"
    assert message in events[-1].response.error.message
    assert events[-1].response.error.code == "server_error"


def test_a_rate_limit_in_a_stream_is_told_as_one() -> None:
    assert told(b'data: {"error": {"message": "Slow down", "code": 429}}\n\n')[-1].response.error.code == (
        "rate_limit_exceeded"
    )


def test_a_body_that_is_no_reply_goes_on_as_it_is() -> None:
    for body in (b"<html>", b'{"error": {"message": "no"}}', b"[]"):
        converter = ReplyConverter(False, REQUEST)
        assert converter.feed(body) + converter.finish() == body


def test_a_whole_reply_repeats_its_request() -> None:
    request = REQUEST | {
        "instructions": "Be quick.",
        "temperature": 0.5,
        "tool_choice": "none",
        "metadata": {"a": "b"},
    }
    converter = ReplyConverter(False, request)
    message = {"role": "assistant", "content": "yes", "reasoning": THOUGHTS, "reasoning_content": THOUGHTS}
    converter.feed(json.dumps({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}).encode())
    response = Response.model_validate_json(converter.finish())
    assert response.output_text == "yes"
    assert [item.type for item in response.output] == ["reasoning", "message"]
    echoed = (response.instructions, response.temperature, response.tool_choice, response.metadata)
    assert echoed == ("Be quick.", 0.5, "none", {"a": "b"})
