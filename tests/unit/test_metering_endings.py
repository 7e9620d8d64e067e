"""How a reply ended, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.metering_replies import REPLIES, RESPONSE
from support.metering_world import CALL, Reply, chunk, completion, events, read

from gateway.case_models import Api

STREAMS = [reply for reply in REPLIES if reply.streaming]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.name)
def test_a_reply_that_breaks_off_is_dropped(reply: Reply) -> None:
    half = reply.body[: len(reply.body) // 3]
    assert read(reply.api, half, streaming=reply.streaming, complete=False).ending == "dropped"
    assert read(reply.api, b"", streaming=reply.streaming, complete=False).ending == "dropped"


@pytest.mark.parametrize("reply", STREAMS, ids=lambda reply: reply.name)
def test_a_stream_is_complete_once_its_end_marker_came(reply: Reply) -> None:
    assert read(reply.api, reply.body, complete=False) == reply.metered
    assert read(reply.api, reply.body.rstrip(), complete=False) == reply.metered


@pytest.mark.parametrize("reply", STREAMS, ids=lambda reply: reply.name)
def test_a_stream_without_its_end_marker_is_dropped(reply: Reply) -> None:
    first = reply.body.replace(b"\r\n", b"\n").split(b"\n\n")[0] + b"\n\n"
    assert read(reply.api, first).ending == "dropped"
    assert read(reply.api, b"").ending == "dropped"
    # cut within an event
    assert read(reply.api, first + b'data: {"id": ').ending == "dropped"


def test_done_may_be_missing_or_come_without_a_finish_reason() -> None:
    said = chunk({"content": "Hi"})
    assert read("chat", events(said, chunk({}, "stop"))).ending == "ok"
    done = read("chat", events(said, done=True))
    assert (done.ending, done.stop_reason) == ("ok", None)
    assert read("chat", events(said)).ending == "dropped"


def test_a_stream_of_two_choices_ends_with_both() -> None:
    def of(index: int, finish: str | None) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {"content": "x"}, "finish_reason": finish}]}

    assert read("chat", events(of(0, None), of(1, None), of(0, "stop"))).ending == "dropped"
    assert read("chat", events(of(0, None), of(1, None), of(0, "stop"), of(1, "length"))).ending == "ok"
    assert read("chat", events(of(0, "stop"), of(1, None))).ending == "dropped"
    assert read("chat", events(of(0, "stop"), of(0, None))).ending == "ok"


def test_usage_after_done_counts() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    late = events(chunk({"content": "x"}, "stop"), done=True) + events({"choices": [], "usage": usage})
    found = read("chat", late).usage
    assert found
    assert (found.input, found.output) == (3, 2)


def test_the_last_of_several_running_usages_counts() -> None:
    # vLLM's stream_options.continuous_usage_stats
    def usage(output: int) -> dict[str, int]:
        return {"prompt_tokens": 3, "completion_tokens": output, "total_tokens": 3 + output}

    body = events(chunk({"content": "x"}, usage=usage(1)), chunk({}, "stop", usage=usage(2)), done=True)
    found = read("chat", body).usage
    assert found
    assert found.output == 2


def test_a_stream_that_broke_off_has_a_known_prompt_and_an_unknown_output() -> None:
    anthropic = next(reply for reply in STREAMS if reply.api == "messages")
    assert anthropic.metered.usage
    parts = anthropic.body.split(b"\n\n")
    for count in (1, 5):
        broken = read("messages", b"\n\n".join(parts[:count]) + b"\n\n", complete=False)
        assert broken.ending == "dropped"
        assert broken.usage == anthropic.metered.usage.model_copy(update={"output": None})
    # with message_delta all is told, though message_stop be missing
    broken = read("messages", b"\n\n".join(parts[:-2]) + b"\n\n", complete=False)
    assert (broken.ending, broken.usage) == ("dropped", anthropic.metered.usage)
    running = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    found = read("chat", events(chunk({"content": "x"}, usage=running)), complete=False).usage
    assert found
    assert (found.input, found.output) == (3, None)


def test_a_messages_streams_first_usage_counts_except_for_the_output() -> None:
    usage = {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 1}
    start = {"type": "message_start", "message": {"model": "m", "usage": usage}}
    untold = read("messages", events(start, {"type": "message_stop"})).usage
    assert untold
    assert (untold.input, untold.cache_read, untold.output) == (20, 80, None)
    late = {"output_tokens": 5, "input_tokens": None, "cache_read_input_tokens": None}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": late}
    found = read("messages", events(start, end, {"type": "message_stop"})).usage
    assert found
    assert (found.input, found.cache_read, found.output) == (20, 80, 5)


def test_blank_lines_that_keep_the_connection_alive() -> None:
    # api-docs.deepseek.com/quick_start/rate_limit: empty lines, or keep-alive comments in a stream
    whole = b"\n\n\n" + json.dumps(completion({"content": "x"})).encode()
    assert read("chat", whole, streaming=False).ending == "ok"
    waiting = b": keep-alive\n\n" * 3
    assert read("chat", waiting + REPLIES[0].body) == REPLIES[0].metered


def test_the_latest_counts_of_a_messages_stream_apply() -> None:
    # some servers of this format know the prompt's tokens only at the end
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 0, "output_tokens": 0}}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    told = {
        "input_tokens": 20,
        "cache_read_input_tokens": 80,
        "output_tokens": 5,
        "cache_creation_input_tokens": None,
    }
    found = read("messages", events(start, {**end, "usage": told}, {"type": "message_stop"})).usage
    assert found
    assert (found.input, found.cache_read, found.cache_write, found.output) == (20, 80, None, 5)


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "end_turn",
    }


def response(*output: dict[str, Any]) -> dict[str, Any]:
    return {**RESPONSE, "output": list(output)}


def said_in_response(text: str) -> dict[str, Any]:
    return response({"type": "message", "content": [{"type": "output_text", "text": text}]})


EMPTY: list[tuple[Api, dict[str, Any]]] = [
    ("chat", completion({"content": ""})),
    ("chat", completion({"content": None, "tool_calls": []})),
    ("chat", completion({"content": "", "reasoning_content": "Hm."})),
    ("chat", completion({"content": "\n\n", "reasoning": "Hm.", "reasoning_details": [{"text": "Hm."}]})),
    ("chat", {"choices": []}),
    ("messages", message()),
    ("messages", message({"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": ""})),
    ("responses", response()),
    ("responses", response({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]})),
    ("responses", said_in_response("")),
]
SAYING: list[tuple[Api, dict[str, Any]]] = [
    ("chat", completion({"content": "Hi"})),
    ("chat", completion({"content": [{"type": "text", "text": "Hi"}]})),
    ("chat", completion({"content": None, "refusal": "No."})),
    ("chat", completion({"content": None, "tool_calls": [CALL]})),
    ("messages", message({"type": "text", "text": "Hi"})),
    ("messages", message({"type": "tool_use", "id": "t", "name": "shell", "input": {}})),
    ("responses", said_in_response("Hi")),
    ("responses", response({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]})),
    ("responses", response({"type": "function_call", "name": "shell", "arguments": "{}"})),
    ("responses", response({"type": "custom_tool_call", "name": "apply_patch", "input": "x"})),
]


@pytest.mark.parametrize(("api", "body"), EMPTY)
def test_a_complete_reply_without_text_or_calls_is_empty(api: Api, body: dict[str, Any]) -> None:
    assert read(api, json.dumps(body).encode(), streaming=False).ending == "empty"


@pytest.mark.parametrize(("api", "body"), SAYING)
def test_a_reply_with_text_or_a_call_is_ok(api: Api, body: dict[str, Any]) -> None:
    assert read(api, json.dumps(body).encode(), streaming=False).ending == "ok"


def as_stream(api: Api, body: dict[str, Any]) -> bytes:
    if api == "chat":
        deltas = [{**choice, "delta": choice["message"]} for choice in body["choices"]]
        return events({"choices": [{**delta, "finish_reason": None} for delta in deltas]}, done=True)
    if api == "responses":
        added = [{"type": "response.output_item.done", "item": item} for item in body["output"]]
        return events(*added, {"type": "response.completed", "response": {**body, "output": []}})
    blocks = [{"type": "content_block_start", "content_block": block} for block in body["content"]]
    return events({"type": "message_start", "message": {**body, "content": []}}, *blocks, {"type": "message_stop"})


@pytest.mark.parametrize(("api", "body"), EMPTY + SAYING)
def test_a_stream_and_a_whole_reply_have_the_same_ending(api: Api, body: dict[str, Any]) -> None:
    whole = read(api, json.dumps(body).encode(), streaming=False)
    assert read(api, as_stream(api, body)).ending == whole.ending


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"x"', b"{}", b'{"object": "list"}', b"[" * 100_000])
def test_a_body_that_is_not_a_reply_is_malformed(api: Api, body: bytes) -> None:
    metered = read(api, body, streaming=False)
    assert (metered.ending, metered.usage) == ("malformed", None)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("event", [b"data: <html>\n\n", b"data: [1]\n\n", b'data: {"id": "x"\n\n'])
def test_an_event_that_is_not_an_object_is_malformed(api: Api, event: bytes) -> None:
    assert read(api, event).ending == "malformed"
    assert read(api, event, complete=False).ending == "malformed"
    # and stays so, though the stream goes on to its end
    assert read("chat", event + REPLIES[0].body).ending == "malformed"


def test_pings_and_events_without_data_are_ignored() -> None:
    body = b"event: ping\ndata: still here\n\ndata:\n\nevent: other\n\n" + REPLIES[0].body
    assert read("chat", body) == REPLIES[0].metered


@pytest.mark.parametrize(
    ("api", "body", "reason"),
    [
        ("chat", completion({"content": "x"}, "length"), "length"),
        (
            "messages",
            {**message(), "stop_reason": "model_context_window_exceeded"},
            "model_context_window_exceeded",
        ),
        ("responses", RESPONSE, "completed"),
        (
            "responses",
            {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "max_output_tokens",
        ),
    ],
)
def test_the_stop_reason_is_the_providers_own_word(api: Api, body: dict[str, Any], reason: str) -> None:
    assert read(api, json.dumps(body).encode(), streaming=False).stop_reason == reason


def test_the_tokens_of_a_reply_without_usage_are_unknown() -> None:
    for body in (completion({"content": "x"}), completion({"content": "x"}, usage=None)):
        metered = read("chat", json.dumps(body).encode(), streaming=False)
        assert (metered.ending, metered.usage, metered.told_cost) == ("ok", None, None)
