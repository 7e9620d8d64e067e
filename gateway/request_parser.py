"""A claw's request as it came: its wire format, its content, and whether it may be answered at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.case_models import API_PATHS, Api
from gateway.exchange import Exchange, plain
from gateway.headers import is_compressed
from gateway.refusals import RefusedError
from gateway.tool_filter import TOOL_LISTS

MAX_BODY = 8 * 1024 * 1024
"""The most bytes of one request, which holds the whole conversation: more tokens than any model reads. All cases share
one gateway, and parsing a larger body would hold the others up."""
MAX_TOOLS = 1024
"""The most tools of one request; providers allow a few hundred."""

COUNT_PATH = "/v1/messages/count_tokens"
"""Counts a prompt's tokens, free of charge."""
PATHS: Mapping[str, Api] = {f"/v1{path}": api for api, path in API_PATHS.items()} | {COUNT_PATH: "messages"}

_IMAGES = frozenset({"image_url", "input_image", "image", "computer_screenshot"})
"""The types of those parts of a message that are images, in all three wire formats."""
_HOLDERS = ("content", "output")
"""The keys under which a message, or a part of one, holds parts."""


@dataclass(frozen=True)
class Incoming:
    """A request that may be answered."""

    api: Api
    raw: bytes
    """The body as it came."""
    body: dict[str, Any]
    """The body's JSON."""
    counts_tokens: bool
    """Whether it only asks how many tokens its prompt has."""

    @property
    def streams(self) -> bool:
        """Whether the claw wants a stream."""
        return self.body.get("stream") is True


async def read(http: web.Request, exchange: Exchange, model: str | None, paths: Mapping[str, Api]) -> Incoming:
    """Read a request.

    Args:
        http: the request, with its body unread.
        exchange: gets what is asked for.
        model: the only one that may be asked for; None: any.
        paths: the paths that are served, with their wire formats.

    Raises:
        RefusedError: it is not a request of its wire format, asks for another model, or holds images.
    """
    if http.path not in paths:
        raise RefusedError(404, f"There is nothing at {http.path}. The paths are: {', '.join(paths)}")
    exchange.api = api = paths[http.path]
    if http.method != "POST":
        raise RefusedError(405, f"{http.method} is not allowed on {http.path}")
    if is_compressed(http.headers):
        raise RefusedError(415, "Compressed requests are not supported: send the body without Content-Encoding.")
    try:
        raw = await http.read()
        body = json.loads(raw)
    except web.HTTPRequestEntityTooLarge:
        text = f"The request is too large: the limit is {MAX_BODY >> 20} MiB."
        raise RefusedError(413, text) from None
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"The body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise RefusedError(400, "The body is not a JSON object.")
    asked = body.get("model")
    if not isinstance(asked, str):
        raise RefusedError(400, "Missing required parameter: 'model'")
    incoming = Incoming(api, raw, body, http.path == COUNT_PATH)
    exchange.model, exchange.stream = plain(asked), incoming.streams
    if model is not None and asked != model:
        text = f"The model {asked!r} is not served here: this run measures {model!r} and nothing else."
        raise RefusedError(404, text, code="model_not_found")
    if any(isinstance(body.get(key), list) and len(body[key]) > MAX_TOOLS for key in TOOL_LISTS):
        raise RefusedError(400, f"The request offers more than {MAX_TOOLS} tools.")
    if _has_image(body.get("input" if api == "responses" else "messages")):
        raise RefusedError(400, "Images are not passed on: the claws are compared on text alone.")
    return incoming


def _has_image(parts: object) -> bool:
    """Whether messages, or parts of them, hold an image. A tool's arguments are not searched: they are text."""
    if not isinstance(parts, list):
        return False
    for part in parts:
        if isinstance(part, dict):
            if part.get("type") in _IMAGES or any(_has_image(part.get(holder)) for holder in _HOLDERS):
                return True
            output = part.get("output")
            if isinstance(output, dict) and output.get("type") in _IMAGES:
                return True
    return False


def dumped(body: Mapping[str, Any]) -> bytes:
    """A changed request's JSON; halves of surrogate pairs, which UTF-8 lacks, are kept as escapes."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()
