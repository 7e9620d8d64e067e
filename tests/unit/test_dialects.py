"""The test server itself: the official client libraries understand each of its dialects."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from support.dialects.clients import (
    Said,
    Wire,
    anthropic_client,
    ask_chat,
    ask_messages,
    ask_responses,
    openai_client,
)
from support.dialects.delivery import Delivery, Trouble
from support.dialects.profiles import ANTHROPIC, DASHSCOPE, DEEPSEEK, DIALECTS, OPENROUTER, VLLM
from support.dialects.refusing import THOUGHTS
from support.dialects.server import KEY, MODEL, Brain, DialectServer

from gateway.behaviours.base import Job
from gateway.case_models import Api

TURN = "Please run the first command."
TALK = [(dialect, api) for dialect in DIALECTS.values() for api in dialect.apis]
ODD = Delivery(sizes=(1, 2, 3, 5, 7), alive=True)


def commands(*given: str) -> Brain:
    return Brain("commands", Job("case", "/testbed", "", given))


def ask(server: DialectServer, api: Api, messages: list[Any], *, stream: bool, **more: Any) -> Said:
    wire = Wire()
    if api == "messages":
        client = anthropic_client(wire, server.base_url, server.key)
        return ask_messages(client, MODEL, messages, stream=stream, **more)
    asker = ask_chat if api == "chat" else ask_responses
    return asker(openai_client(wire, server.base_url, server.key), MODEL, messages, stream=stream, **more)


TURNS = [
    pytest.param(
        dialect, api, odd, (number + odd) % 2 == 0, id=f"{dialect.name}-{api}-{'odd' if odd else 'plain'}"
    )
    for number, (dialect, api) in enumerate(TALK)
    for odd in (False, True)
]
"""Dialect, format, delivery, stream: each pair of values occurs."""


@pytest.mark.parametrize(("dialect", "api", "odd", "stream"), TURNS)
def test_the_libraries_read_a_turn(dialect: Any, api: Api, odd: bool, stream: bool) -> None:
    delivery = ODD if odd else Delivery()
    with DialectServer(dialect, commands("ls 'caf\u00e9'"), delivery=delivery) as server:
        said = ask(server, api, [{"role": "user", "content": TURN}], stream=stream)
        assert said.text == "I run step 1."
        ((call_id, name, arguments),) = said.calls
        assert name == "exec"
        assert arguments in ("ls 'caf\u00e9'", json.dumps({"command": "ls 'caf\u00e9'"}))
        assert call_id.startswith("call_cb0000x")
        assert said.thoughts == (THOUGHTS if dialect.thoughts and api == "chat" else "")
        (charge,) = server.charges
        assert (charge.prompt, charge.output) == (prompt(said.usage, api), output(said.usage))


def prompt(usage: Any, api: Api) -> int:
    """All prompt tokens of a usage object."""
    if api == "messages":
        return int(usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens)
    return int(usage.prompt_tokens if api == "chat" else usage.input_tokens)


def output(usage: Any) -> int:
    return int(getattr(usage, "completion_tokens", None) or usage.output_tokens)


def follow_up(said: Said, **more: Any) -> list[Any]:
    """The conversation after a command was run, in chat form."""
    ((call_id, name, arguments),) = said.calls
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "user", "content": TURN},
        {"role": "assistant", "content": said.text, "tool_calls": [call], **more},
        {"role": "tool", "tool_call_id": call_id, "content": "done"},
    ]


def test_deepseek_requires_its_reasoning() -> None:
    with DialectServer(DEEPSEEK, commands("one", "two")) as server:
        said = ask(server, "chat", [{"role": "user", "content": TURN}], stream=True)
        with pytest.raises(openai.BadRequestError, match=r"reasoning_content.*passed back"):
            ask(server, "chat", follow_up(said), stream=True)
        again = ask(server, "chat", follow_up(said, reasoning_content=said.thoughts), stream=True)
        assert "two" in again.calls[0][2]
        off = {"thinking": {"type": "disabled"}}
        assert ask(server, "chat", follow_up(said), stream=False, extra_body=off).thoughts == ""


def test_dashscope_reports_its_cache_only_if_marked() -> None:
    long = "many words " * 1000
    marked = [{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]
    with DialectServer(DASHSCOPE) as server:
        plain = [ask(server, "chat", [{"role": "user", "content": long}], stream=False).usage for _ in range(2)]
        assert [usage.prompt_tokens_details for usage in plain] == [None, None]
        first, second = (
            ask(server, "chat", [{"role": "user", "content": marked}], stream=False).usage.prompt_tokens_details
            for _ in range(2)
        )
        assert (first.cached_tokens, second.cache_creation_input_tokens) == (0, 0)
        assert first.cache_creation_input_tokens == second.cached_tokens > 2000


def test_a_marked_conversation_grows_in_the_cache() -> None:
    def turn(text: str, *, marked: bool) -> list[dict[str, Any]]:
        return [{"type": "text", "text": text, **({"cache_control": {"type": "ephemeral"}} if marked else {})}]

    long = "many words " * 1000
    with DialectServer(ANTHROPIC) as server:
        ask(server, "messages", [{"role": "user", "content": turn(long, marked=True)}], stream=False)
        talk = [{"role": "user", "content": turn(long, marked=False)}, {"role": "assistant", "content": "Yes?"}]
        last = {"role": "user", "content": turn("more words " * 500, marked=True)}
        usage = ask(server, "messages", [*talk, last], stream=True).usage
        assert usage.cache_read_input_tokens == server.charges[0].cache_write
        assert 0 < usage.cache_creation_input_tokens < usage.cache_read_input_tokens


def test_usage_is_reported_only_if_asked_for() -> None:
    for dialect, told in ((VLLM, False), (OPENROUTER, True)):
        with DialectServer(dialect) as server:
            options = {"stream_options": {"include_usage": False}}
            said = ask(server, "chat", [{"role": "user", "content": TURN}], stream=True, **options)
            assert (said.usage is not None, len(server.charges)) == (told, int(told))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_openai_errors(status: int, kind: type[Exception]) -> None:
    with DialectServer(DIALECTS["openai"]) as server:
        server.troubles.append(Trouble(status))
        with pytest.raises(kind):
            ask(server, "chat", [{"role": "user", "content": TURN}], stream=True)


def test_anthropic_overload_and_a_missing_key() -> None:
    with DialectServer(ANTHROPIC) as server:
        server.troubles.append(Trouble(529, "Overloaded"))
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            ask(server, "messages", [{"role": "user", "content": TURN}], stream=True)
        server.troubles.append(Trouble(event=529, message="Overloaded"))
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            ask(server, "messages", [{"role": "user", "content": TURN}], stream=True)
        server.key = "another"
        wrong = anthropic_client(Wire(), server.base_url, KEY)
        with pytest.raises(anthropic.AuthenticationError):
            ask_messages(wrong, MODEL, [{"role": "user", "content": TURN}], stream=False)
