"""A claw's request as it came: which wire format it speaks, what its body holds, whether it may go on at all."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.case import Exchange
from gateway.metering.decoding import BrokenEncodingError, decoder_of
from gateway.models import Api
from gateway.refusals import RefusedError

MAX_BODY = 256 * 1024 * 1024
"""The most bytes of one request, decoded: whole conversations come with each."""
DECODED_AT_ONCE = 256
"""Compressed bytes between two looks at how many they have become: a few can stand for very many."""

MODELS_PATH = "/v1/models"
COUNT_PATH = "/v1/messages/count_tokens"
"""Counts a prompt's tokens, free of charge."""
PATHS: Mapping[str, Api] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    COUNT_PATH: "messages",
}

_IMAGES = frozenset({"image_url", "input_image", "image", "computer_screenshot"})
"""The types of those parts of a message that are images, in all three wire formats."""
_HOLDERS = ("content", "output")
"""Where a message, or a part of one, holds parts."""


@dataclass(frozen=True)
class Incoming:
    """A request that may go on."""

    api: Api
    raw: bytes
    """The body as it came, maybe compressed."""
    body: dict[str, Any]
    """What the body holds."""
    decoded: bytes
    """The body's JSON as it came."""
    counts_tokens: bool
    """Whether it only asks how many tokens its prompt has."""

    @property
    def streams(self) -> bool:
        """Whether the claw wants a stream."""
        return self.body.get("stream") is True

    @property
    def size(self) -> int:
        """Bytes of the body, decoded."""
        return len(self.decoded)


def api_of(path: str) -> Api:
    """The wire format of a path (raises RefusedError)."""
    try:
        return PATHS[path]
    except KeyError:
        raise RefusedError(404, f"There is nothing at {path}. Served are: {', '.join(PATHS)}") from None


def application(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    """What is served on a case's socket, all by one handler: a refused request is counted and logged, too."""
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


async def read(http: web.Request, api: Api, exchange: Exchange, model: str | None) -> Incoming:
    """Read a request.

    Args:
        http: whose body is neither read nor decompressed yet.
        api: its wire format.
        exchange: what it asks for is noted here.
        model: the only one that may be asked for; None: any.

    Raises:
        RefusedError: it is no request of this format, asks for another model, or holds images.
    """
    if http.method != "POST":
        raise RefusedError(405, f"Not allowed to {http.method} on {http.path}")
    try:
        raw = await http.read()
    except web.HTTPRequestEntityTooLarge:
        raise RefusedError(413, "The request is too large.") from None
    decoded = _decoded(raw, http.headers.get("Content-Encoding", ""))
    try:
        body = json.loads(decoded)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"The body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise RefusedError(400, "The body is no JSON object.")
    asked = body.get("model")
    if not isinstance(asked, str):
        raise RefusedError(400, "Missing required parameter: 'model'")
    incoming = Incoming(api, raw, body, decoded, http.path == COUNT_PATH)
    exchange.model, exchange.stream = asked, incoming.streams
    if model is not None and asked != model:
        text = (
            f"The model {asked!r} is not served here: this run's is {model!r}, and its numbers are of that alone."
        )
        raise RefusedError(404, text, code="model_not_found")
    if _has_image(body.get("input" if api == "responses" else "messages")):
        raise RefusedError(400, "Images are not passed on: the claws are compared on text alone.")
    return incoming


def _decoded(raw: bytes, encoding: str) -> bytes:
    if encoding.strip().lower() in ("", "identity"):
        return raw
    parts, size = [], 0
    try:
        decoder = decoder_of(encoding)
        for start in range(0, len(raw), DECODED_AT_ONCE):
            parts.append(decoder.feed(raw[start : start + DECODED_AT_ONCE]))
            size += len(parts[-1])
            if size > MAX_BODY:
                raise RefusedError(413, "The request is too large.")
    except BrokenEncodingError as error:
        raise RefusedError(400, f"The body can't be read: {error}") from None
    if not decoder.whole():
        raise RefusedError(400, "The body can't be read: its compressed form breaks off")
    return b"".join(parts)


def _has_image(parts: object) -> bool:
    """Whether messages, or parts of them, hold an image. A tool's arguments are not looked into: they are text."""
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
    """A changed request's JSON; half surrogate pairs, which UTF-8 lacks, are kept as escapes."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()
