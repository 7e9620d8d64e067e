"""Requests of each wire format as the chat/completions request that the scripted model reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.case_models import Api
from gateway.chat_wire import ChatRequest, parse_request


def read(api: Api, body: Mapping[str, Any]) -> ChatRequest:
    """The request in chat form (raises gateway.chat_wire.BadRequestError)."""
    if api == "chat":
        return parse_request(body)
    messages = _responses_messages(body) if api == "responses" else _messages_messages(body)
    shared = {key: body.get(key) for key in ("model", "stream")}
    return parse_request({**shared, "messages": list(messages), "tools": _tools(body) or None})


def texts(value: Any) -> str:
    """Every string inside a value, joined: what a conversation says, whatever its shape."""
    if isinstance(value, str):
        return value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return "\n".join(text for text in map(texts, inner) if text)


def _tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Functions only: a provider's own tools run at the provider."""
    if isinstance(body.get("tool_choice"), Mapping) and body["tool_choice"].get("type") == "none":
        return []
    found = []
    for tool in body.get("tools") or []:
        schema = tool.get("parameters", tool.get("input_schema"))
        if tool.get("type", "function") in ("function", "custom") and isinstance(schema, dict):
            function = {"name": tool["name"], "description": tool.get("description"), "parameters": schema}
            found.append({"type": "function", "function": function})
    return found


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _responses_messages(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if body.get("instructions"):
        yield {"role": "system", "content": body["instructions"]}
    given = body.get("input") or []
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        match item.get("type", "message"):
            case "message":
                yield {"role": item["role"], "content": texts(item["content"])}
            case "function_call":
                call = _call(item["call_id"], item["name"], item["arguments"])
                yield {"role": "assistant", "content": None, "tool_calls": [call]}
            case "function_call_output":
                yield {"role": "tool", "tool_call_id": item["call_id"], "content": texts(item["output"])}


def _messages_messages(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if body.get("system"):
        yield {"role": "system", "content": texts(body["system"])}
    for message in body.get("messages") or []:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [
            _call(block["id"], block["name"], json.dumps(block["input"]))
            for block in blocks
            if block["type"] == "tool_use"
        ]
        results = [block for block in blocks if block["type"] == "tool_result"]
        for block in results:
            result = texts(block.get("content"))
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": result}
        if said or not results:
            yield {"role": message["role"], "content": said, **({"tool_calls": calls} if calls else {})}
