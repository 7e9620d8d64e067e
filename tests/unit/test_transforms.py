"""Transforms of chat requests: what they change, what they leave, and that providers need them so."""

from __future__ import annotations

import copy
import json
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects.clients import ask_chat
from support.dialects.profiles import DASHSCOPE, DEEPSEEK, VLLM
from support.dialects.refusing import THOUGHTS
from support.dialects.server import MODEL, Brain, DialectServer
from support.transform_world import client, commands, markers, plain_client

from gateway.behaviours.base import Job
from gateway.transforms import TRANSFORMS, Transforms

LONG = "many words " * 1000
texts = st.text(max_size=12)
parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=3)
call = st.fixed_dictionaries({"id": texts, "type": st.just("function")})
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": texts | parts | st.none()},
    optional={"tool_calls": st.lists(call, max_size=2)},
)
body = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(message, max_size=8)},
    optional={"stream": st.booleans(), "stream_options": st.none() | st.dictionaries(texts, st.integers())},
)


def talk(asked: openai.OpenAI, turns: int, *, stream: bool, text: str | None = None) -> list[dict[str, Any]]:
    """A claw's conversation: it knows chat/completions as OpenAI has it, and no more.

    Args:
        asked: the library it uses.
        turns: how often it asks, unless the model comes to an end.
        stream: whether it streams.
        text: what it keeps of the model's texts; None: all.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": LONG}, {"role": "user", "content": "go"}]
    for _ in range(turns):
        said = ask_chat(asked, MODEL, messages, stream=stream)
        calls = [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}
            for name, tool, arguments in said.calls
        ]
        content = said.text if text is None or not calls else text
        messages.append({"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    return messages


def brain(count: int) -> Brain:
    return Brain("commands", Job("case", "/testbed", "", commands(count)))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'cache'; known are include_usage, "):
        Transforms(["cache"])


@given(body)
@settings(max_examples=200, deadline=None)
def test_no_argument_is_changed_and_other_formats_are_left_alone(request: dict[str, Any]) -> None:
    before = copy.deepcopy(request)
    Transforms(TRANSFORMS).request("chat", request)
    assert Transforms(TRANSFORMS).request("messages", request) == before
    assert request == before


@given(body)
@settings(deadline=None)
def test_include_usage_changes_only_streams(request: dict[str, Any]) -> None:
    sent = Transforms(["include_usage"]).request("chat", request)
    if request.get("stream"):
        options = sent.pop("stream_options")
        assert options == {**(request.pop("stream_options", None) or {}), "include_usage": True}
    assert sent == request


def test_include_usage_makes_a_stream_report_usage() -> None:
    with DialectServer(VLLM) as server:
        unasked = {"include_usage": False}
        told = [
            ask_chat(each, MODEL, [{"role": "user", "content": "go"}], stream=True, stream_options=unasked).usage
            for each in (plain_client(server), client(server, "include_usage"))
        ]
        assert told[0] is None
        assert told[1].prompt_tokens == server.charges[0].prompt


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("text", ["I look.", ""], ids=["text", "no text"])
def test_dashscope_reads_everything_seen_before_from_its_cache(stream: bool, text: str) -> None:
    with DialectServer(DASHSCOPE, brain(4)) as server:
        talk(client(server, "dashscope_cache_control"), 4, stream=stream, text=text)
        prompts = [charge.cache_read + charge.cache_write for charge in server.charges]
        assert [charge.cache_read for charge in server.charges] == [0, *prompts[:-1]]
        assert all(charge.cache_write for charge in server.charges)
        assert all(markers(received.json) in (2, 3) for received in server.received)


def test_dashscope_finds_its_block_behind_many_results() -> None:
    names = [f"call_{number}" for number in range(30)]
    calls = [{"id": name, "type": "function", "function": {"name": "exec", "arguments": "{}"}} for name in names]
    first = [{"role": "system", "content": LONG}, {"role": "user", "content": LONG}]
    results = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in names]
    with DialectServer(DASHSCOPE) as server:
        asked = client(server, "dashscope_cache_control")
        ask_chat(asked, MODEL, first, stream=False)
        ask_chat(asked, MODEL, [*first, {"role": "assistant", "tool_calls": calls}, *results], stream=False)
        assert server.charges[1].cache_read == server.charges[0].cache_write > 0


@given(body)
@settings(max_examples=300, deadline=None)
def test_dashscope_markers_are_few_and_texts_stay(request: dict[str, Any]) -> None:
    sent = Transforms(["dashscope_cache_control"]).request("chat", request)
    assert markers(sent) <= 4
    assert [read(message) for message in sent["messages"]] == [
        read(message) or (" " if message["role"] == "assistant" else "") for message in request["messages"]
    ]
    said = [message for message in sent["messages"] if message["role"] == "assistant"]
    assert not any('"text": ""' in json.dumps(message) or not message["content"] for message in said)
    if request["messages"] and read(sent["messages"][-1]):
        assert markers(sent["messages"][-1]) or isinstance(sent["messages"][-1]["content"], list)


def read(message: dict[str, Any]) -> str:
    content = message["content"]
    return "".join(part["text"] for part in content) if isinstance(content, list) else content or ""


def test_markers_of_the_claw_stay_and_count() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    request = {"messages": [{"role": "system", "content": [marked] * 3}, {"role": "user", "content": "b"}]}
    sent = Transforms(["dashscope_cache_control"]).request("chat", request)
    assert sent["messages"][0] == request["messages"][0]
    assert markers(sent["messages"][1]) == 1
    full = {"messages": [{"role": "system", "content": [marked] * 4}, {"role": "user", "content": "b"}]}
    assert Transforms(["dashscope_cache_control"]).request("chat", full) == full


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_deepseek_gets_its_reasoning_back_through_turns(stream: bool) -> None:
    with DialectServer(DEEPSEEK, brain(2)) as server:
        with pytest.raises(openai.BadRequestError, match="must be passed back"):
            talk(plain_client(server), 2, stream=stream)
        asked = client(server, "deepseek_reasoning_content")
        messages = talk(asked, 3, stream=stream)
        assert [bool(message.get("tool_calls")) for message in messages if message["role"] == "assistant"] == [
            True,
            True,
            False,
        ]
        ask_chat(asked, MODEL, [*messages, {"role": "user", "content": "more"}], stream=stream)
        said = [message for message in server.received[-1].json["messages"] if message["role"] == "assistant"]
        # the last of the turn, which calls nothing, goes back as well
        assert [message["reasoning_content"] for message in said] == [THOUGHTS] * 3


def test_deepseek_turns_without_calls_stay_as_they_are() -> None:
    with DialectServer(DEEPSEEK, Brain("noop")) as server:
        asked = client(server, "deepseek_reasoning_content")
        messages = [{"role": "user", "content": "hello"}]
        said = ask_chat(asked, MODEL, messages, stream=True)
        messages += [{"role": "assistant", "content": said.text}, {"role": "user", "content": "and now?"}]
        ask_chat(asked, MODEL, messages, stream=True)
        assert server.received[-1].json["messages"] == messages


def reply(call_id: str, reasoning: str) -> dict[str, Any]:
    said = {"role": "assistant", "content": "", "reasoning_content": reasoning, "tool_calls": [{"id": call_id}]}
    return {"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}


def reasoning_of(transforms: Transforms, call_id: str, **more: Any) -> Any:
    said = {"role": "assistant", "content": "", "tool_calls": [{"id": call_id}], **more}
    sent = transforms.request("chat", {"messages": [said]})
    return sent["messages"][0].get("reasoning_content")


def test_deepseek_forgets_the_oldest_first() -> None:
    transforms = Transforms(["deepseek_reasoning_content"])
    for number in range(40):
        (listen,) = transforms.listeners("chat")
        listen(reply(f"call_{number}", f"{number} " + "x" * 1024 * 1024))
    known = [number for number in range(40) if reasoning_of(transforms, f"call_{number}")]
    assert known == list(range(40 - len(known), 40))
    assert 10 <= len(known) <= 16
    for number in range(10_000):
        (listen,) = transforms.listeners("chat")
        listen(reply(f"more_{number}", "x"))
    assert reasoning_of(transforms, "more_9999") == "x"
    assert not reasoning_of(transforms, "more_0")


def test_deepseek_keeps_the_claws_own_reasoning_and_uses_only_complete_replies() -> None:
    transforms = Transforms(["deepseek_reasoning_content"])
    (listen,) = transforms.listeners("chat")
    listen({"choices": [{"index": 0, "delta": reply("call_1", "half")["choices"][0]["message"]}]})
    assert reasoning_of(transforms, "call_1") is None
    listen({"choices": [{"index": 0, "delta": {"reasoning_content": " and half"}, "finish_reason": "tool_calls"}]})
    assert reasoning_of(transforms, "call_1") == "half and half"
    assert reasoning_of(transforms, "call_1", reasoning_content="mine") == "mine"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "tool_calls", "content", "role", "messages", "index", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["choices", "messages", "stream", "usage", "x"]), anything))
@settings(max_examples=300, deadline=None)
def test_transforms_accept_any_json(odd: dict[str, Any]) -> None:
    transforms = Transforms(TRANSFORMS)
    transforms.request("chat", odd)
    for listen in transforms.listeners("chat"):
        listen(odd)
