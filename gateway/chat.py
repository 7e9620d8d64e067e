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
from gateway.removed_calls import ReplyFilter, restore
from gateway.tokens import Usage, count
from gateway.tool_filter import filter_tools

MAX_BODY = 256 * 1024 * 1024
"""The most bytes of one request: whole conversations come with each."""
RETRY_AFTER = "1"
"""Seconds that a rate limit asks to wait."""
CHAT_PATH = "/v1/chat/completions"
MODELS_PATH = "/v1/models"

_SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


class ChatHandler:
    """Answers the requests of one case."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def application(self) -> web.Application:
        """The web application to be served on the case's socket."""
        app = web.Application(client_max_size=MAX_BODY)
        # One handler for everything: a refused request is counted and logged like any other.
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        exchange = self._case.begin(http.method, http.path)
        try:
            if http.path == CHAT_PATH:
                return await self._chat(http, exchange)
            if http.path == MODELS_PATH and http.method in ("GET", "HEAD"):
                return self._models(exchange)
            return _refuse(exchange, 404, f"Invalid URL ({http.method} {http.path})")
        finally:
            self._case.finish(exchange)

    def _models(self, exchange: Exchange) -> web.Response:
        exchange.status, exchange.ending = 200, "ok"
        model = {"id": self._case.model_name, "object": "model", "created": 0, "owned_by": "clawbench"}
        return web.json_response({"object": "list", "data": [model]})

    async def _chat(self, http: web.Request, exchange: Exchange) -> web.StreamResponse:
        if http.method != "POST":
            return _refuse(exchange, 405, f"Not allowed to {http.method} on {CHAT_PATH}")
        try:
            raw = wire.read_json(await http.read())
            request = wire.parse_request(raw)
        except web.HTTPRequestEntityTooLarge:
            return _refuse(exchange, 413, "The request is too large.")
        except wire.BadRequestError as error:
            return _refuse(exchange, 400, str(error))
        self._case.keep_body(raw)
        exchange.stream = bool(request.stream)
        exchange.model = request.model
        filtered = filter_tools(restore(raw), self._case.allowed_tools)
        exchange.offered, exchange.tools = filtered.offered, filtered.passed
        removed = [function for function in request.functions if function.name in filtered.removed]
        request = wire.parse_request(filtered.request)
        answer = self._case.model.answer(request, self._case.failed, removed)
        if answer is Fault.EMPTY:
            answer = wire.Reply("")
        if isinstance(answer, Fault):
            return await _fail(http, exchange, answer)
        return await self._reply(http, exchange, request, answer)

    async def _reply(
        self, http: web.Request, exchange: Exchange, request: wire.ChatRequest, reply: wire.Reply
    ) -> web.StreamResponse:
        tools = [tool.model_dump() for tool in request.tools or []]
        prompt, cached = self._case.cache.measure(tools, request.messages)
        called = f"{reply.call.name}{reply.call.arguments}" if reply.call else ""
        usage = Usage(prompt=prompt, cached=cached, completion=count(reply.text + called))
        await asyncio.sleep(self._case.model.pace.before)
        exchange.status = 200
        calls = ReplyFilter("chat", self._case.removed_tools, exchange.tools)
        response: web.StreamResponse
        if request.stream:
            response = await self._stream(http, request, reply, usage, calls)
        else:
            whole = json.dumps(wire.completion(request.model, reply, usage)).encode()
            body = web.Response(body=calls.feed(whole) + calls.finish(), content_type="application/json")
            await body.prepare(http)
            await body.write_eof()
            response = body
        exchange.removed_calls = tuple(calls.renamed)
        exchange.ending = "ok" if reply.text or reply.call else "empty"
        exchange.usage, exchange.finish_reason = usage, reply.finish_reason
        return response

    async def _stream(
        self,
        http: web.Request,
        request: wire.ChatRequest,
        reply: wire.Reply,
        usage: Usage,
        calls: ReplyFilter,
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=_SSE_HEADERS)
        await response.prepare(http)
        for chunk in wire.chunks(request.model, reply, usage, with_usage=request.wants_usage):
            await response.write(calls.feed(wire.sse(json.dumps(chunk))))
            await asyncio.sleep(self._case.model.pace.between)
        await response.write(calls.feed(wire.sse("[DONE]")) + calls.finish())
        await response.write_eof()
        return response


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
