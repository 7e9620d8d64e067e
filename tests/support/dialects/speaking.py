"""A reply of the scripted model in each wire format: as one JSON body, or as a stream's events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway import chat_wire
from gateway.case_models import Api, TokenCounts
from gateway.chat_wire import Reply
from support.dialects.profiles import Dialect

_NOTHING = TokenCounts()
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Spoken:
    """What is to be said to one request."""

    dialect: Dialect
    api: Api
    model: str
    reply: Reply
    usage: Mapping[str, Any] | None
    """None: the reply tells none."""
    thoughts: str = ""

    def body(self) -> dict[str, Any]:
        """The answer to a request that does not stream."""
        return {"chat": self._chat, "responses": self._response, "messages": self._message}[self.api]()

    def events(self) -> Iterator[bytes]:
        """The same as a stream, one server-sent event each."""
        return {"chat": self._chunks, "responses": self._response_events, "messages": self._message_events}[
            self.api
        ]()

    def _chat(self) -> dict[str, Any]:
        body = chat_wire.completion(self.model, self.reply, _NOTHING)
        del body["usage"]
        if self.thoughts:
            body["choices"][0]["message"][self.dialect.thoughts] = self.thoughts
        return body | ({"usage": self.usage} if self.usage else {})

    def _chunks(self) -> Iterator[bytes]:
        head, *rest = chat_wire.chunks(self.model, self.reply, _NOTHING, with_usage=False)
        yield _data(head)
        for piece in chat_wire.pieces(self.thoughts):
            choice = {"index": 0, "delta": {self.dialect.thoughts: piece}, "finish_reason": None}
            yield _data(head | {"choices": [choice]})
        yield from map(_data, rest)
        if self.usage:
            # OpenRouter's last chunk has a choice that says nothing; the others' has none.
            empty = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            choices = [empty] if self.dialect.name == "openrouter" else []
            yield _data(head | {"choices": choices, "usage": self.usage})
        yield DONE

    # -- Anthropic's messages

    def _message(self) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": self.reply.text}] if self.reply.text else []
        if call := self.reply.call:
            used = {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            blocks.append(used)
        return {
            "id": f"msg_{chat_wire.new_completion_id()[9:]}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": blocks,
            "stop_reason": "tool_use" if call else "end_turn",
            "stop_sequence": None,
            **({"usage": self.usage} if self.usage else {}),
        }

    def _message_events(self) -> Iterator[bytes]:
        whole = self._message()
        start = whole | {"content": [], "stop_reason": None}
        if self.usage:
            # What was written by then is not known yet; the totals come with message_delta.
            start["usage"] = {**self.usage, "output_tokens": 1}
        yield _typed({"type": "message_start", "message": start})
        for index, block in enumerate(whole["content"]):
            yield from self._block_events(index, block)
            if index == 0:
                yield _typed({"type": "ping"})
        ended = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
        if self.usage:
            ended["usage"] = {key: value for key, value in self.usage.items() if key.endswith(("tokens", "cost"))}
        yield _typed(ended)
        yield _typed({"type": "message_stop"})

    def _block_events(self, index: int, block: dict[str, Any]) -> Iterator[bytes]:
        if block["type"] == "text":
            opened = block | {"text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in chat_wire.pieces(block["text"])]
        else:
            opened = block | {"input": {}}
            assert self.reply.call
            parts = chat_wire.pieces(self.reply.call.arguments)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *parts)]
        yield _typed({"type": "content_block_start", "index": index, "content_block": opened})
        for delta in deltas:
            yield _typed({"type": "content_block_delta", "index": index, "delta": delta})
        yield _typed({"type": "content_block_stop", "index": index})

    # -- OpenAI's responses

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if self.reply.text:
            part = {"type": "output_text", "text": self.reply.text, "annotations": [], "logprobs": []}
            said = {
                "type": "message",
                "id": "msg_0",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
            items.append(said)
        if call := self.reply.call:
            called = {"type": "function_call", "id": "fc_0", "status": "completed", "call_id": call.id}
            items.append(called | {"name": call.name, "arguments": call.arguments})
        return items

    def _response(self) -> dict[str, Any]:
        return {
            "id": f"resp_{chat_wire.new_completion_id()[9:]}",
            "object": "response",
            "created_at": 1_750_000_000,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "model": self.model,
            "output": self._items(),
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "metadata": {},
            **({"usage": self.usage} if self.usage else {}),
        }

    def _response_events(self) -> Iterator[bytes]:
        whole = self._response()
        started = {key: value for key, value in whole.items() if key != "usage"}
        started |= {"status": "in_progress", "output": []}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": started},
            {"type": "response.in_progress", "response": started},
        ]
        for index, item in enumerate(whole["output"]):
            events += self._item_events(index, item)
        events.append({"type": "response.completed", "response": whole})
        for number, event in enumerate(events):
            yield _typed(event | {"sequence_number": number})

    def _item_events(self, index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        place: dict[str, Any] = {"output_index": index, "item_id": item["id"]}
        added = {"type": "response.output_item.added", "output_index": index}
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        if item["type"] == "message":
            (part,) = item["content"]
            place["content_index"] = 0
            yield added | {"item": item | {"content": [], "status": "in_progress"}}
            yield {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
            for piece in chat_wire.pieces(part["text"]):
                yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": part}
        else:
            yield added | {"item": item | {"arguments": "", "status": "in_progress"}}
            for piece in chat_wire.pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            ended = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, **ended}
        yield done


def error_event(dialect: Dialect, api: Api, model: str, code: int, message: str) -> bytes:
    """How a stream that has begun with 200 tells that it failed."""
    if api == "messages":
        return _typed(dialect.error(code, message, api))
    if api == "responses":
        failed = {"code": "server_error", "message": message}
        return _typed({"type": "error", **failed, "param": None, "sequence_number": 9})
    if dialect.name == "openrouter":
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        told = {"code": code, "message": message}
        chunk = {"id": "gen-0", "object": "chat.completion.chunk", "created": 0, "model": model}
        return _data(chunk | {"provider": "some", "error": told, "choices": [choice]})
    return _data(dialect.error(code, message, api))


def _data(value: Mapping[str, Any]) -> bytes:
    # Not escaped, so that a stream has characters of several bytes to be cut in.
    return chat_wire.sse(json.dumps(value, ensure_ascii=False))


def _typed(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\n".encode() + _data(event)
