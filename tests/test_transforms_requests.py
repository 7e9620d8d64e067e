"""Requests of the responses API in terms of chat/completions: all that can be said is, the rest is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.transforms import TransformError, Transforms

NAME = "responses_to_chat"


def sent(**request: Any) -> dict[str, Any]:
    api, body = Transforms([NAME]).request("responses", {"model": "m", "input": "go"} | request)
    assert api == "chat"
    return body


SCHEMA = {"name": "answer", "schema": {"type": "object"}, "strict": True}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"text": {"format": {"type": "text"}, "verbosity": "low"}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", **SCHEMA}}},
            {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        ),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
        ({"store": False, "include": ["x"], "truncation": "disabled", "previous_response_id": None}, {}),
        (
            {"parallel_tool_calls": False, "metadata": {"a": "b"}},
            {"parallel_tool_calls": False, "metadata": {"a": "b"}},
        ),
        ({"temperature": 0.5, "enable_thinking": True}, {"temperature": 0.5, "enable_thinking": True}),
        ({"top_logprobs": 2}, {"top_logprobs": 2, "logprobs": True}),
        (
            {
                "tools": [{"type": "function", "name": "x", "parameters": {}, "strict": None}],
                "tool_choice": {"type": "function", "name": "x"},
            },
            {
                "tools": [{"type": "function", "function": {"name": "x", "parameters": {}}}],
                "tool_choice": {"type": "function", "function": {"name": "x"}},
            },
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "x"}],
                }
            },
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "x"}}]},
                }
            },
        ),
        ({"tools": [], "tool_choice": "auto"}, {"tool_choice": "auto"}),
    ],
)
def test_settings_are_said_in_chat_terms(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sent(**given) == {"model": "m", "messages": [{"role": "user", "content": "go"}]} | expected


def test_items_become_messages() -> None:
    items = [
        {"role": "developer", "content": "rules"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "a", "name": "exec", "arguments": "{}", "id": "fc_1"},
        {"type": "function_call", "call_id": "b", "name": "exec", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "A"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "B"}]},
        {"type": "function_call", "call_id": "c", "name": "exec", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "C"},
        {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_text", "text": "y"}]},
    ]

    def called(*names: str) -> list[dict[str, Any]]:
        function = {"name": "exec", "arguments": "{}"}
        return [{"id": name, "type": "function", "function": function} for name in names]

    assert sent(input=items, instructions="Be quick.")["messages"] == [
        {"role": "system", "content": "Be quick."},
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "I look.", "tool_calls": called("a", "b")},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "assistant", "content": None, "tool_calls": called("c")},
        {"role": "tool", "tool_call_id": "c", "content": "C"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"previous_response_id": "resp_1"}, "'previous_response_id' is not supported here: no state is kept"),
        ({"conversation": "conv_1"}, "'conversation' is not"),
        ({"background": True}, "'background' is not"),
        ({"truncation": "auto"}, "'truncation' is not"),
        ({"tools": [{"type": "custom", "name": "apply_patch"}]}, "tool of type 'custom'"),
        ({"tools": [{"type": "web_search"}]}, "tool of type 'web_search'"),
        ({"tool_choice": {"type": "custom", "name": "x"}}, "'tool_choice' is not"),
        ({"text": {"format": {"type": "grammar"}}}, r"'text\.format' is not"),
        ({"input": None}, "'input' must be"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "item of type 'item_reference'"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            r"input\[0\].*'input_image'; only texts",
        ),
        ({"input": [{"type": "function_call", "name": "x", "arguments": "{}"}]}, "call_id' must be a string"),
        ({"input": [{"role": "critic", "content": "x"}]}, r"role' is not supported"),
    ],
)
def test_what_chat_cannot_say_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TransformError, match=message):
        sent(**given)


def test_another_order_of_names_changes_nothing() -> None:
    names = [NAME, "dashscope_cache_control", "include_usage"]
    orders: list[Callable[[list[str]], list[str]]] = [list, lambda given: given[::-1]]
    made = [
        Transforms(order(names)).request("responses", {"model": "m", "input": "x", "stream": True})
        for order in orders
    ]
    assert made[0] == made[1]


def test_a_provider_with_an_api_of_its_own_is_left_alone() -> None:
    request = {"model": "m", "input": "x", "stream": True}
    assert Transforms(["include_usage"]).request("responses", request) == ("responses", request)
