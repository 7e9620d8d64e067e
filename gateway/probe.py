"""One tiny request through a case's socket, as a claw would send it: streamed, and with a tool.

It is counted like any other request of the case. A model without tool calling refuses it, as it would refuse every
claw.
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from gateway.case_models import API_PATHS, Api
from gateway.client import UnixConnection

_WORDS = "Answer with the one word: ready"
_TOOL = {"name": "shell", "description": "Runs a command."}
_PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_MOST_TOKENS = 64
"""Sent only where the format requires it: models differ in its name, and refuse other names."""


def ask(socket: Path, api: Api, model: str, seconds: float) -> None:
    """Send the request and read the reply to its end; the case's counts show the result.

    Args:
        socket: of the case.
        api: the wire format.
        model: its name, as claws must send it.
        seconds: the longest time without a byte.
    """
    connection = UnixConnection(socket, seconds)
    try:
        connection.request(
            "POST",
            f"/v1{API_PATHS[api]}",
            json.dumps(_body(api, model)).encode(),
            {"Content-Type": "application/json", "anthropic-version": "2023-06-01"},
        )
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return  # it broke off, which the counts show
    finally:
        connection.close()


def _body(api: Api, model: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "stream": True}
    if api == "responses":
        return body | {"input": _WORDS, "tools": [{"type": "function", **_TOOL, "parameters": _PARAMETERS}]}
    body["messages"] = [{"role": "user", "content": _WORDS}]
    if api == "messages":
        return body | {"max_tokens": _MOST_TOKENS, "tools": [{**_TOOL, "input_schema": _PARAMETERS}]}
    tool = {"type": "function", "function": {**_TOOL, "parameters": _PARAMETERS}}
    return body | {"tools": [tool], "stream_options": {"include_usage": True}}
