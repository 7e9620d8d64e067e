"""OpenAI's chat/completions: reads requests and writes replies. No input or output here."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from common.errors import ClawbenchError
from gateway.case_models import TokenCounts

PIECE = 8192
"""The most characters in one delta: clients read streams line by line, some with small buffers."""
FEWEST_PIECES = 4
CALL_ID = "call_cb{step:04d}x{salt}"
"""The id of a tool call. It holds the step, so that it is known even if a conversation has lost its start."""


class BadRequestError(ClawbenchError, ValueError):
    """The request is not a chat/completions request; the message is for the client."""


class FunctionSpec(BaseModel):
    """A function that the client offers."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolSpec(BaseModel):
    """A tool that the client offers; only functions have a `function`."""

    type: str = "function"
    function: FunctionSpec | None = None


class StreamOptions(BaseModel):
    """What the client wants of a stream."""

    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """The fields of a chat/completions request that matter here; all others are ignored, as providers do."""

    model: str
    messages: list[dict[str, Any]] = Field(min_length=1)
    tools: list[ToolSpec] | None = None
    tool_choice: Any = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def functions(self) -> list[FunctionSpec]:
        """The functions that a reply may call."""
        if self.tool_choice == "none":
            return []
        return [tool.function for tool in self.tools or [] if tool.function]

    @property
    def wants_usage(self) -> bool:
        """Whether a stream is to end with a usage chunk."""
        return bool(self.stream_options and self.stream_options.include_usage)


@dataclass(frozen=True)
class ToolCall:
    """One call of a function of the client's."""

    name: str
    arguments: str
    """JSON."""
    step: int
    salt: str = field(default_factory=lambda: secrets.token_hex(6))

    @property
    def id(self) -> str:
        """Unique to this call."""
        return CALL_ID.format(step=self.step, salt=self.salt)


@dataclass(frozen=True)
class Reply:
    """What the model says: a text, and possibly a call."""

    text: str
    call: ToolCall | None = None

    @property
    def finish_reason(self) -> str:
        """Why the model stopped, in OpenAI's words."""
        return "tool_calls" if self.call else "stop"


def parse_request(raw: Any) -> ChatRequest:
    """Read a request (raises BadRequestError)."""
    try:
        request = ChatRequest.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise BadRequestError(f"Invalid value for '{where}': {first['msg']}") from error
    for index, message in enumerate(request.messages):
        if not isinstance(message.get("role"), str):
            raise BadRequestError(f"Missing required parameter: 'messages[{index}].role'")
    return request


def usage_body(usage: TokenCounts) -> dict[str, Any]:
    """A usage object: `prompt_tokens` includes the cached ones."""
    cached, output = usage.cache_read or 0, usage.output or 0
    prompt = cached + (usage.input or 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def new_completion_id() -> str:
    """An id for one completion."""
    return f"chatcmpl-{secrets.token_hex(12)}"


def completion(model: str, reply: Reply, usage: TokenCounts) -> dict[str, Any]:
    """The whole answer to a request that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.call:
        function = {"name": reply.call.name, "arguments": reply.call.arguments}
        message["tool_calls"] = [{"id": reply.call.id, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    return {
        "id": new_completion_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": usage_body(usage),
    }


def chunks(model: str, reply: Reply, usage: TokenCounts, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """The same answer as the chunks of a stream: role, text, call, finish reason and, if asked for, usage."""
    head: dict[str, Any] = {
        "id": new_completion_id(),
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
    }
    if with_usage:
        head["usage"] = None

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return head | {
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    if reply.call:
        for delta in _call_deltas(reply.call):
            yield chunk({"tool_calls": [delta]})
    yield chunk({}, reply.finish_reason)
    if with_usage:
        yield head | {"choices": [], "usage": usage_body(usage)}


def _call_deltas(call: ToolCall) -> Iterator[dict[str, Any]]:
    yield {"index": 0, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    for piece in pieces(call.arguments):
        yield {"index": 0, "function": {"arguments": piece}}


def pieces(text: str) -> Sequence[str]:
    """Cut a text as a stream would: a short one in a few pieces, a long one in pieces of at most `PIECE`."""
    size = max(1, min(PIECE, -(-len(text) // FEWEST_PIECES)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def sse(data: str) -> bytes:
    """One server-sent event."""
    return f"data: {data}\n\n".encode()
