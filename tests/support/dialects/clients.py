"""The official client libraries, with a transport that keeps what goes over the wire."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai

PLACEHOLDER = "placeholder"
"""The key that a claw has: none."""
SECONDS = 120.0
"""Without a byte: a hang."""


@dataclass
class Seen:
    """One exchange as the client's end of the wire saw it."""

    method: str
    target: str
    headers: dict[str, str]
    request: bytes
    status: int
    answered: dict[str, str]
    """The answer's headers."""
    body: bytearray = field(default_factory=bytearray)
    whole: bool = False
    """Whether the client read to the end; a library may leave after [DONE], or at an error."""

    def got(self, sent: bytearray) -> bool:
        """Whether what came is what was sent, as far as the client read."""
        return self.body == (sent if self.whole else sent[: len(self.body)]) and bool(self.body)


class Wire(httpx2.BaseTransport):
    """Carries requests to a Unix socket, or to where their address says, and keeps both directions."""

    def __init__(self, socket: Path | None = None) -> None:
        # Nothing here is encrypted: no certificates need to be loaded.
        plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._carrier = httpx2.HTTPTransport(verify=plain, uds=str(socket) if socket else None)
        self.seen: list[Seen] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = request.read()
        answer = self._carrier.handle_request(request)
        target = request.url.raw_path.decode()
        seen = Seen(request.method, target, dict(request.headers), sent, answer.status_code, dict(answer.headers))
        self.seen.append(seen)
        assert isinstance(answer.stream, httpx2.SyncByteStream)
        stream = _Kept(answer.stream, seen)
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=stream, extensions=answer.extensions
        )

    def close(self) -> None:
        self._carrier.close()


class _Kept(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, seen: Seen) -> None:
        self._inner, self._seen = inner, seen

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            self._seen.body += piece
            yield piece
        self._seen.whole = True

    def close(self) -> None:
        self._inner.close()


def openai_client(wire: Wire, base_url: str = "http://gateway/v1", key: str = PLACEHOLDER) -> openai.OpenAI:
    """OpenAI's own, which asks once."""
    http = httpx2.Client(transport=wire, timeout=SECONDS)
    return openai.OpenAI(api_key=key, base_url=base_url, http_client=http, max_retries=0)


def anthropic_client(
    wire: Wire, base_url: str = "http://gateway/v1", key: str = PLACEHOLDER
) -> anthropic.Anthropic:
    """Anthropic's own, which asks once; it adds /v1 to the address itself."""
    http = httpx2.Client(transport=wire, timeout=SECONDS)
    return anthropic.Anthropic(api_key=key, base_url=base_url.removesuffix("/v1"), http_client=http, max_retries=0)


@dataclass(frozen=True)
class Said:
    """What a client library made of an answer."""

    text: str
    calls: tuple[tuple[str, str, str], ...]
    """Of each tool call: id, name, arguments (JSON)."""
    usage: Any
    thoughts: str = ""


SHELL: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
Ask = Callable[..., Said]


def ask_chat(client: openai.OpenAI, model: str, messages: list[Any], *, stream: bool, **more: Any) -> Said:
    """One turn of chat/completions with one tool."""
    function = {"name": "exec", "description": "Run a command.", "parameters": SHELL}
    given: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
    }
    if not stream:
        whole = client.chat.completions.create(**given, **more)
        message = whole.choices[0].message
        calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []]
        return Said(message.content or "", tuple(calls), whole.usage, _thoughts(message))
    text, thoughts, usage = "", "", None
    calls_by: dict[int, list[str]] = {}
    for chunk in client.chat.completions.create(
        stream=True, **({"stream_options": {"include_usage": True}} | given | more)
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            thoughts += _thoughts(choice.delta)
            for call in choice.delta.tool_calls or []:
                known = calls_by.setdefault(call.index, ["", "", ""])
                known[0] += call.id or ""
                known[1] += (call.function and call.function.name) or ""
                known[2] += (call.function and call.function.arguments) or ""
    return Said(text, tuple((one, two, three) for one, two, three in calls_by.values()), usage, thoughts)


def _thoughts(message: Any) -> str:
    return getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""


def ask_responses(client: openai.OpenAI, model: str, items: list[Any], *, stream: bool, **more: Any) -> Said:
    """One turn of the responses API with one tool."""
    tool = {"type": "function", "name": "exec", "description": "Run.", "parameters": SHELL, "strict": False}
    given: dict[str, Any] = {"model": model, "input": items, "tools": [tool], **more}
    if stream:
        with client.responses.stream(**given) as events:
            events.until_done()
            whole = events.get_final_response()
    else:
        whole = client.responses.create(**given)
    calls = [(item.call_id, item.name, item.arguments) for item in whole.output if item.type == "function_call"]
    return Said(whole.output_text, tuple(calls), whole.usage)


def ask_messages(
    client: anthropic.Anthropic, model: str, messages: list[Any], *, stream: bool, **more: Any
) -> Said:
    """One turn of the messages API with one tool."""
    tool = {"name": "exec", "description": "Run a command.", "input_schema": SHELL}
    given: dict[str, Any] = {"model": model, "messages": messages, "tools": [tool], "max_tokens": 500, **more}
    if stream:
        with client.messages.stream(**given) as events:
            whole = events.get_final_message()
    else:
        whole = client.messages.create(**given)
    text = "".join(block.text for block in whole.content if block.type == "text")
    calls = [
        (block.id, block.name, json.dumps(block.input)) for block in whole.content if block.type == "tool_use"
    ]
    return Said(text, tuple(calls), whole.usage)
