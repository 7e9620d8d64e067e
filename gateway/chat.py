"""What a case's socket answers: chat/completions and the list of models, and nothing else.

There are no control endpoints in here, so whoever holds a case's socket can only talk to its model.
"""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from gateway import wire
from gateway.behaviours.base import Fault
from gateway.case import Case, Exchange
from gateway.intake import MODELS_PATH, application
from gateway.metering.usage import usage_of
from gateway.refusals import models_response
from gateway.removed_calls import ReplyFilter, restore
from gateway.scripted import ScriptedModel
from gateway.tokens import PromptCache, Usage, count
from gateway.tool_filter import filter_tools

RETRY_AFTER = "1"
"""Seconds that a rate limit asks to wait."""
CHAT_PATH = "/v1/chat/completions"

_SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_JSON_HEADERS = {"Content-Type": "application/json; charset=utf-8"}


class ChatHandler:
    """Answers the requests of one case."""

    def __init__(self, case: Case) -> None:
        """Take a case (raises ValueError where its model is no scripted one that is known)."""
        self._case = case
        self._model = ScriptedModel.of(case.spec)
        self._cache = PromptCache()
        self._failed = 0

    def application(self) -> web.Application:
        """The web application to be served on the case's socket."""
        return application(self._handle)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        exchange = self._case.begin(http.method, http.path)
        try:
            if http.path == CHAT_PATH:
                return await self._chat(http, exchange)
            if http.path == MODELS_PATH and http.method in ("GET", "HEAD"):
                return models_response(exchange, self._case.spec.model)
            return _refuse(exchange, 404, f"Invalid URL ({http.method} {http.path})")
        finally:
            self._case.finish(exchange)

    async def _chat(self, http: web.Request, exchange: Exchange) -> web.StreamResponse:
        if http.method != "POST":
            return _refuse(exchange, 405, f"Not allowed to {http.method} on {CHAT_PATH}")
        try:
            body = await http.read()
            raw = wire.read_json(body)
            request = wire.parse_request(raw)
        except web.HTTPRequestEntityTooLarge:
            return _refuse(exchange, 413, "The request is too large.")
        except wire.BadRequestError as error:
            return _refuse(exchange, 400, str(error))
        self._case.keep_body(raw)
        exchange.api, exchange.stream = "chat", bool(request.stream)
        exchange.model = request.model
        filtered = filter_tools(restore(raw), self._case.spec.allowed_tools)
        exchange.offered, exchange.tools = filtered.offered, filtered.passed
        removed = [function for function in request.functions if function.name in filtered.removed]
        request = wire.parse_request(filtered.request)
        answer = self._model.answer(request, self._failed, removed)
        if answer is Fault.EMPTY:
            answer = wire.Reply("")
        if isinstance(answer, Fault):
            self._failed += answer is Fault.SERVER_ERROR
            return await _fail(http, exchange, answer)
        return await self._reply(http, exchange, request, answer, body)

    async def _reply(
        self, http: web.Request, exchange: Exchange, request: wire.ChatRequest, reply: wire.Reply, body: bytes
    ) -> web.StreamResponse:
        tools = [tool.model_dump() for tool in request.tools or []]
        prompt, cached = self._cache.measure(tools, request.messages)
        called = f"{reply.call.name}{reply.call.arguments}" if reply.call else ""
        usage = Usage(prompt=prompt, cached=cached, completion=count(reply.text + called))
        headers = _SSE_HEADERS if request.stream else _JSON_HEADERS
        await asyncio.sleep(self._model.pace.before)
        exchange.status = 200
        calls = ReplyFilter("chat", self._case.removed_tools, exchange.tools)
        pieces = [calls.feed(piece) for piece in _pieces(request, reply, usage)]
        pieces = [piece for piece in (*pieces, calls.finish()) if piece]
        exchange.removed_calls = tuple(calls.renamed)
        response = web.StreamResponse(headers=headers)
        if not request.stream:
            response.content_length = sum(map(len, pieces))
        await response.prepare(http)
        for number, piece in enumerate(pieces):
            if number and request.stream:
                await asyncio.sleep(self._model.pace.between)
            await response.write(piece)
        # counted before the connection ends: a claw may leave as soon as it has read the last event
        exchange.ending, exchange.replied = "ok" if reply.text or reply.call else "empty", True
        exchange.finish_reason = reply.finish_reason
        exchange.usage = usage_of("chat", wire.usage_body(usage))
        self._case.record(exchange, body, headers=headers, chunks=pieces)
        await response.write_eof()
        return response


def _pieces(request: wire.ChatRequest, reply: wire.Reply, usage: Usage) -> list[bytes]:
    """A reply's body, cut as it is sent."""
    if not request.stream:
        return [json.dumps(wire.completion(request.model, reply, usage)).encode()]
    chunks = wire.chunks(request.model, reply, usage, with_usage=request.wants_usage)
    return [wire.sse(json.dumps(chunk)) for chunk in chunks] + [wire.sse("[DONE]")]


def _refuse(exchange: Exchange, status: int, message: str) -> web.Response:
    exchange.status, exchange.ending = status, "refused"
    return web.json_response(wire.error_body(message, "invalid_request_error"), status=status)


async def _fail(http: web.Request, exchange: Exchange, fault: Fault) -> web.StreamResponse:
    exchange.ending = fault.value
    match fault:
        case Fault.SERVER_ERROR:
            exchange.status = 500
            body = wire.error_body("The server had an error while processing your request.", "server_error")
            return web.json_response(body, status=500)
        case Fault.UNAUTHORIZED:
            exchange.status = 401
            body = wire.error_body("Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
            return web.json_response(body, status=401)
        case Fault.RATE_LIMITED:
            exchange.status = 429
            body = wire.error_body("Rate limit reached for requests.", "requests", "rate_limit_exceeded")
            return web.json_response(body, status=429, headers={"Retry-After": RETRY_AFTER})
        case Fault.DROPPED:
            if http.transport:
                http.transport.close()
            return web.Response()
        case Fault.EMPTY:
            raise AssertionError("an empty answer is a reply")
        case Fault.HUNG:
            # Ends by cancellation: the client leaves, or the case is closed.
            await asyncio.Event().wait()
            raise AssertionError("nothing sets this event")
        case Fault.MALFORMED:
            exchange.status = 200
            return await _malformed(http, streaming=bool(exchange.stream))


async def _malformed(http: web.Request, *, streaming: bool) -> web.StreamResponse:
    """Send half a JSON object; a stream then breaks off without its end."""
    broken = '{"id": "chatcmpl-0", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": '
    if not streaming:
        return web.Response(text=broken, content_type="application/json")
    response = web.StreamResponse(headers=_SSE_HEADERS)
    await response.prepare(http)
    await response.write(wire.sse(broken))
    if http.transport:
        http.transport.close()
    return response
