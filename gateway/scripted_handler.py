"""A case whose model is scripted: chat/completions alone, answered without a provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import ClassVar

from aiohttp import web

from gateway import chat_wire
from gateway.behaviours.base import Fault
from gateway.case_handler import CaseHandler
from gateway.case_models import Api, Cost, TokenCounts
from gateway.exchange import Exchange
from gateway.open_case import Case
from gateway.refusals import RefusedError
from gateway.removed_calls import CallRenamer
from gateway.request_parser import Incoming
from gateway.scripted import ScriptedModel
from gateway.tokens import PromptCache, count
from gateway.tool_filter import filter_tools

_SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_JSON_HEADERS = {"Content-Type": "application/json; charset=utf-8"}
_HALF_A_REPLY = '{"id": "chatcmpl-0", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": '


class ScriptedHandler(CaseHandler):
    """Answers the requests of one case."""

    paths: ClassVar[Mapping[str, Api]] = {"/v1/chat/completions": "chat"}

    def __init__(self, case: Case) -> None:
        """Take a case (raises ValueError for an unknown model)."""
        super().__init__(case, model=case.spec.model, only=False)
        self._scripted = ScriptedModel.of(case.spec)
        self._cache = PromptCache()
        self._failed = 0

    async def answer(self, http: web.Request, exchange: Exchange, incoming: Incoming) -> web.StreamResponse:
        """Let the model answer."""
        request = _parsed(incoming.body)
        filtered = filter_tools(incoming.body, self.case.spec.allowed_tools)
        exchange.note_tools(filtered.offered, filtered.passed)
        self.case.note_first(exchange, incoming.api, filtered.request)
        removed = [function for function in request.functions if function.name in filtered.removed]
        request = _parsed(filtered.request)
        answer = self._scripted.answer(request, self._failed, removed)
        if answer is Fault.EMPTY:
            answer = chat_wire.Reply("")
        if isinstance(answer, Fault):
            self._failed += answer is Fault.SERVER_ERROR
            return await _fail(http, exchange, answer)
        return await self._reply(http, exchange, request, answer, incoming.raw)

    async def _reply(
        self,
        http: web.Request,
        exchange: Exchange,
        request: chat_wire.ChatRequest,
        reply: chat_wire.Reply,
        body: bytes,
    ) -> web.StreamResponse:
        tools = [tool.model_dump() for tool in request.tools or []]
        prompt, cached = self._cache.measure(tools, request.messages)
        called = f"{reply.call.name}{reply.call.arguments}" if reply.call else ""
        output = count(reply.text + called)
        exchange.tokens = usage = TokenCounts(input=prompt - cached, cache_read=cached, output=output, reasoning=0)
        headers = _SSE_HEADERS if request.stream else _JSON_HEADERS
        await asyncio.sleep(self._scripted.pace.before)
        exchange.status, exchange.served_model = 200, exchange.model
        calls = CallRenamer("chat", self.case.removed_tools, exchange.tools)
        pieces = [calls.feed(piece) for piece in _pieces(request, reply, usage)]
        pieces = [piece for piece in (*pieces, calls.finish()) if piece]
        exchange.removed_calls = tuple(calls.renamed)
        response = web.StreamResponse(headers=headers)
        if not request.stream:
            response.content_length = sum(map(len, pieces))
        await response.prepare(http)
        for number, piece in enumerate(pieces):
            if number and request.stream:
                await asyncio.sleep(self._scripted.pace.between)
            await response.write(piece)
        # counted before the connection ends: a claw may leave as soon as it has read the last event
        exchange.ending = "ok" if reply.text or reply.call else "empty"
        exchange.replied, exchange.cost = True, Cost(unpriced=1)
        exchange.finish_reason = reply.finish_reason
        if self.case.recorder:
            self.case.recorder.record(exchange, body, headers=headers, chunks=pieces)
        await response.write_eof()
        return response


def _parsed(body: Mapping[str, object]) -> chat_wire.ChatRequest:
    try:
        return chat_wire.parse_request(body)
    except chat_wire.BadRequestError as error:
        raise RefusedError(400, str(error)) from None


def _pieces(request: chat_wire.ChatRequest, reply: chat_wire.Reply, usage: TokenCounts) -> list[bytes]:
    """A reply's body, cut as it is sent."""
    if not request.stream:
        return [json.dumps(chat_wire.completion(request.model, reply, usage)).encode()]
    chunks = chat_wire.chunks(request.model, reply, usage, with_usage=request.wants_usage)
    return [chat_wire.sse(json.dumps(chunk)) for chunk in chunks] + [chat_wire.sse("[DONE]")]


async def _fail(http: web.Request, exchange: Exchange, fault: Fault) -> web.StreamResponse:
    exchange.ending = fault.value
    match fault:
        case Fault.SERVER_ERROR:
            text = "The server had an error while processing your request."
            raise RefusedError(500, text, ending=fault.value)
        case Fault.UNAUTHORIZED:
            raise RefusedError(401, "Incorrect API key provided.", ending=fault.value, code="invalid_api_key")
        case Fault.RATE_LIMITED:
            text, headers = "Rate limit reached for requests.", {"Retry-After": "1"}
            raise RefusedError(429, text, ending=fault.value, code="rate_limit_exceeded", headers=headers)
        case Fault.HUNG:
            # Ends by cancellation: the client leaves, or the case is closed.
            await asyncio.Event().wait()
        case Fault.MALFORMED if not exchange.stream:
            exchange.status = 200
            return web.Response(text=_HALF_A_REPLY, content_type="application/json")
        case Fault.MALFORMED:
            exchange.status = 200
            response = web.StreamResponse(headers=_SSE_HEADERS)
            await response.prepare(http)
            await response.write(chat_wire.sse(_HALF_A_REPLY))
            _break_off(http)
            return response
    _break_off(http)
    return web.Response()


def _break_off(http: web.Request) -> None:
    if http.transport:
        http.transport.close()
