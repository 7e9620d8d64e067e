"""The tool filter: of the tools that a claw offers in a request, only the declared ones reach the model.

Apart from the tools, the request stays as the claw sent it. The claw still has its other tools. A model that does
not know of them has no reason to call them; `gateway.removed_calls` handles the calls that it makes nevertheless.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

TOOL_LISTS = {
    "tools": ("tool_choice", "parallel_tool_calls"),
    "functions": ("function_call",),
    "mcp_servers": (),
}
"""The keys under which a request offers tools, each with the keys that are invalid without it: that of all wire
formats, the older one of chat/completions, and tools that Anthropic's own servers would call."""


@dataclass(frozen=True)
class Filtered:
    """A request as it is passed on, and its tools before and after."""

    request: Mapping[str, Any]
    offered: tuple[str, ...]
    """The names of all tools in the claw's request, in its order."""
    passed: tuple[str, ...]
    """Those that reached the model."""

    @property
    def removed(self) -> tuple[str, ...]:
        """Those that did not."""
        passed = set(self.passed)
        return tuple(name for name in self.offered if name not in passed)


def filter_tools(request: Mapping[str, Any], allowed: Collection[str] | None) -> Filtered:
    """Remove the tools from a request that may not reach the model.

    A list that becomes empty is left out, with the keys that are invalid without it. A choice that names a removed
    tool becomes "auto". A request that offers only allowed tools is passed on as it is.

    Args:
        request: of chat/completions, responses or messages, possibly malformed; it is not changed.
        allowed: the names that pass; None: all.
    """
    passed_on = dict(request)
    offered: list[str] = []
    for key, companions in TOOL_LISTS.items():
        tools = request.get(key)
        if not isinstance(tools, list):
            continue
        offered += map(tool_name, tools)
        if allowed is None or all(tool_name(tool) in allowed for tool in tools):
            continue
        passed_on[key] = kept = [tool for tool in tools if tool_name(tool) in allowed]
        if kept:
            choice = next(iter(companions), "")
            if choice in request:
                gone = {tool_name(tool) for tool in tools} - {tool_name(tool) for tool in kept}
                passed_on[choice] = _choice(request[choice], gone)
        else:
            for name in (key, *companions):
                passed_on.pop(name, None)
    passed = tuple(name for name in offered if allowed is None or name in allowed)
    return Filtered(passed_on, tuple(offered), passed)


def tool_name(tool: object) -> str:
    """The name of a tool in any shape; a provider's own tools (`web_search`) are named by their type."""
    if not isinstance(tool, Mapping):
        return ""
    kind = tool.get("type", "function")
    inner = tool.get(kind) if isinstance(kind, str) else None
    named = inner if isinstance(inner, Mapping) else tool
    name = named.get("name", kind)
    return name if isinstance(name, str) else ""


def _choice(choice: object, gone: Collection[str]) -> object:
    """A `tool_choice` or `function_call` that names none of the removed tools."""
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or kind in ("auto", "any", "none"):
        return choice  # a word, or in messages an object for one
    if kind == "allowed_tools":
        return _choice_of_some(choice, gone)
    if tool_name(choice) not in gone:
        return choice
    if kind == "tool":
        return {key: value for key, value in choice.items() if key != "name"} | {"type": "auto"}
    return "auto"


def _choice_of_some(choice: Mapping[str, Any], gone: Collection[str]) -> object:
    """A choice among several tools: nested in chat/completions, flat in responses."""
    inner = choice.get("allowed_tools")
    of_some = inner if isinstance(inner, Mapping) else choice
    if not isinstance(of_some.get("tools"), list):
        return choice
    left = [tool for tool in of_some["tools"] if tool_name(tool) not in gone]
    if not left:
        return "auto"
    kept = {**of_some, "tools": left}
    return {**choice, "allowed_tools": kept} if of_some is inner else kept
