"""A request of OpenAI's responses API in terms of chat/completions.

Source: OpenAI's API reference, "Create a model response" and "Create chat completion". What chat/completions
cannot say is refused, never dropped in silence, unless it changes nothing for the model: reasoning items
(chat/completions takes none back), `store`, `include`, and how a stream is dressed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gateway.transforms.base import TransformError

_DROPPED = frozenset({"store", "include", "stream_options", "max_tool_calls", "instructions", "input", "text"})
"""Said elsewhere in the chat request, or of no meaning to it; `max_tool_calls` limits the built-in tools."""
_STATEFUL = ("previous_response_id", "conversation", "prompt", "background")
"""What asks for something that is kept at the provider: nothing is kept here."""
_ROLES: Mapping[str, str] = MappingProxyType(
    {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
)
_TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")


def to_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request in terms of chat/completions.

    Args:
        body: a request's JSON; keys that the responses API doesn't know are a provider's own, and pass.

    Raises:
        TransformError: chat/completions cannot say it.
    """
    for key in _STATEFUL:
        if body.get(key):
            raise TransformError(f"'{key}' is not supported here: no state is kept, send the whole conversation.")
    if body.get("truncation") not in (None, "disabled"):
        raise TransformError("'truncation' is not supported here: send a conversation that fits.")
    chat = {key: value for key, value in body.items() if key not in _DROPPED and key not in _SAID_OTHERWISE}
    chat = {key: value for key, value in chat.items() if key not in (*_STATEFUL, "truncation")}
    chat["messages"] = _messages(body)
    for key, say in _SAID_OTHERWISE.items():
        if body.get(key) is not None:
            chat |= say(body[key])
    chat |= _text_settings(body.get("text"))
    if body.get("stream"):
        # The reply's last event tells the usage in any case.
        chat["stream_options"] = {"include_usage": True}
    return chat


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": _content("instructions", body["instructions"])})
    given = body.get("input")
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list):
        raise TransformError("'input' must be a string or a list of items.")
    for index, item in enumerate(given):
        _add_item(messages, f"input[{index}]", item)
    return messages


def _add_item(messages: list[dict[str, Any]], where: str, item: Any) -> None:
    if not isinstance(item, Mapping):
        raise TransformError(f"'{where}' is no item.")
    match item.get("type", "message"):
        case "message":
            role = _ROLES.get(str(item.get("role")))
            if role is None:
                raise TransformError(f"'{where}.role' is not supported: {item.get('role')!r}.")
            messages.append({"role": role, "content": _content(f"{where}.content", item.get("content"))})
        case "function_call":
            _add_call(messages, where, item)
        case "function_call_output":
            content = _content(f"{where}.output", item.get("output"))
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            messages.append({"role": "tool", "tool_call_id": _string(where, item, "call_id"), "content": text})
        case "reasoning":
            pass
        case kind:
            raise TransformError(f"'{where}' is not supported by this provider: an item of type {kind!r}.")


def _add_call(messages: list[dict[str, Any]], where: str, item: Mapping[str, Any]) -> None:
    """Add a call to the assistant's message that it follows, or to one without text."""
    function = {"name": _string(where, item, "name"), "arguments": _string(where, item, "arguments")}
    call = {"id": _string(where, item, "call_id"), "type": "function", "function": function}
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    messages[-1].setdefault("tool_calls", []).append(call)


def _string(where: str, item: Mapping[str, Any], key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise TransformError(f"'{where}.{key}' must be a string.")
    return value


def _content(where: str, content: Any) -> str | list[dict[str, Any]]:
    """A message's content: a string where there is but one text, which every provider reads."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise TransformError(f"'{where}' must be a string or a list of parts.")
    parts = [_part(f"{where}[{index}]", part) for index, part in enumerate(content)]
    return parts[0]["text"] if len(parts) == 1 else parts


def _part(where: str, part: Any) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return {"type": "text", "text": part["refusal"]}
    raise TransformError(f"'{where}' is not supported: a part of type {kind!r}; only texts are.")


def _tools(tools: Any) -> dict[str, Any]:
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise TransformError("'tools' must be a list.")
    # A list of tools may be empty in the responses API only.
    return {"tools": [_tool(index, tool) for index, tool in enumerate(tools)]} if tools else {}


def _tool(index: int, tool: Any) -> dict[str, Any]:
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if kind != "function":
        raise TransformError(f"'tools[{index}]' is not supported by this provider: a tool of type {kind!r}.")
    kept = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {key: tool[key] for key in kept if tool.get(key) is not None}}


def _tool_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"tool_choice": choice}
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if kind == "function":
        return {"tool_choice": {"type": "function", "function": {"name": choice.get("name")}}}
    if kind == "allowed_tools" and isinstance(choice.get("tools"), list):
        tools = [_tool_choice(tool)["tool_choice"] for tool in choice["tools"]]
        allowed = {"mode": choice.get("mode", "auto"), "tools": tools}
        return {"tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}
    raise TransformError(f"'tool_choice' is not supported by this provider: {kind!r}.")


def _reasoning(reasoning: Any) -> dict[str, Any]:
    effort = reasoning.get("effort") if isinstance(reasoning, Mapping) else None
    return {"reasoning_effort": effort} if effort else {}


def _text_settings(text: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if not isinstance(text, Mapping):
        return settings
    if text.get("verbosity"):
        settings["verbosity"] = text["verbosity"]
    form = text.get("format") or {"type": "text"}
    match form.get("type") if isinstance(form, Mapping) else form:
        case "text":
            pass
        case "json_object":
            settings["response_format"] = {"type": "json_object"}
        case "json_schema":
            schema = {key: value for key, value in form.items() if key != "type"}
            settings["response_format"] = {"type": "json_schema", "json_schema": schema}
        case kind:
            raise TransformError(f"'text.format' is not supported by this provider: {kind!r}.")
    return settings


_SAID_OTHERWISE: Mapping[str, Callable[[Any], dict[str, Any]]] = MappingProxyType(
    {
        "tools": _tools,
        "tool_choice": _tool_choice,
        "reasoning": _reasoning,
        # Not `max_completion_tokens`, which providers that lack the responses API need not know.
        "max_output_tokens": lambda most: {"max_tokens": most},
        "top_logprobs": lambda most: {"top_logprobs": most, "logprobs": True},
    }
)
