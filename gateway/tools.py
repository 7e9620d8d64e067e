"""Finds the tool that runs shell commands among those that a claw offers, and fills in its arguments.

Claws name it `exec`, `terminal`, `shell`, `bash`, `code_run`, …; a tool with another name is recognised by a string
property called `command`, `cmd` or `script`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.chat_wire import FunctionSpec

KNOWN_NAMES = (
    "exec",
    "terminal",
    "shell",
    "bash",
    "run_command",
    "execute_command",
    "shell_command",
    "run_shell_command",
    "code_run",
)
COMMAND_KEYS = ("command", "cmd", "script")
FOLDER_KEYS = ("cwd", "workdir", "working_dir", "working_directory", "directory", "dir_path")
SHELL_NAMES = ("bash", "sh", "shell")

SECONDS = 120
"""How long a command may take, for tools that have such an argument."""
MILLISECONDS = 1000 * SECONDS

_FILLERS: Mapping[str, object] = {
    "string": "Work on the repository.",
    "boolean": False,
    "integer": 1,
    "number": 1,
    "array": [],
    "object": {},
}


@dataclass(frozen=True)
class ShellTool:
    """A tool that runs a command."""

    function: FunctionSpec
    key: str
    """The property that takes the command."""

    def arguments(self, command: str, workdir: str) -> str:
        """The JSON arguments for one call: the command and what else the tool requires.

        Args:
            command: for a POSIX shell.
            workdir: where to run it, for tools that require it.
        """
        properties = _properties(self.function.parameters or {})
        values = required_arguments(self.function, workdir)
        values |= _known_extras(self.function.name, properties, workdir)
        wants_list = "array" in _types(properties.get(self.key, {}))
        values[self.key] = ["bash", "-c", command] if wants_list else command
        return json.dumps(values)


def required_arguments(function: FunctionSpec, workdir: str) -> dict[str, object]:
    """A value for each argument that a function requires.

    Args:
        function: the function.
        workdir: the value of arguments that name a folder.
    """
    schema = function.parameters or {}
    properties = _properties(schema)
    required = schema.get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return {name: _fill(name, properties.get(name, {}), workdir) for name in names}


def find_shell_tool(functions: Sequence[FunctionSpec]) -> ShellTool | None:
    """The shell tool among those offered: known names first, in the order of `KNOWN_NAMES`; None if there is none."""
    by_name = {function.name: function for function in functions}
    known = [by_name[name] for name in KNOWN_NAMES if name in by_name]
    for function in [*known, *functions]:
        key = _command_key(function)
        if key:
            return ShellTool(function, key)
    return None


def _command_key(function: FunctionSpec) -> str | None:
    if function.name == "code_run":
        # GenericAgent's schema leaves it out: its models may write the code into the text instead.
        return "script"
    properties = _properties(function.parameters or {})
    allowed = {"string", "array"} if function.name in KNOWN_NAMES else {"string"}
    return next((key for key in COMMAND_KEYS if key in properties and _types(properties[key]) & allowed), None)


def _known_extras(name: str, properties: Mapping[str, Any], workdir: str) -> dict[str, object]:
    """Arguments that a known tool needs although its schema does not require them."""
    if name == "code_run":
        return {"type": "bash", "cwd": workdir, "timeout": SECONDS}
    extras: dict[str, object] = {}
    if name in ("exec", "terminal") and "timeout" in properties:
        extras["timeout"] = SECONDS
    if name == "exec" and "yieldMs" in properties:
        # openclaw moves a command to the background after 10 s unless told to wait.
        extras["yieldMs"] = MILLISECONDS
    return extras


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: value for name, value in properties.items() if isinstance(value, dict)}


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a property may have; one without a type is taken for a string."""
    if isinstance(schema.get("anyOf"), list):
        options = [option for option in schema["anyOf"] if isinstance(option, dict)]
        return {kind for option in options for kind in _types(option)}
    kind = schema.get("type", "string")
    return {str(option) for option in kind} if isinstance(kind, list) else {str(kind)}


def _fill(name: str, schema: Mapping[str, Any], workdir: str) -> object:
    if "default" in schema:
        return schema["default"]
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return next((shell for shell in SHELL_NAMES if shell in choices), choices[0])
    kinds = _types(schema)
    if name in FOLDER_KEYS and "string" in kinds:
        return workdir
    if name in ("timeout", "timeout_seconds") and kinds & {"integer", "number"}:
        return SECONDS
    return next((value for kind, value in _FILLERS.items() if kind in kinds), None)
