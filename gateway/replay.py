"""Serves a case from its cassette: equal requests get the same replies, others are told where they depart."""

from __future__ import annotations

from aiohttp import web
from multidict import CIMultiDict

from gateway import pacing
from gateway.case import Case, Exchange
from gateway.cassette import DepartureError, Player, Recorded
from gateway.claw_side import ClawSide
from gateway.intake import MODELS_PATH, Incoming, api_of, application, read
from gateway.metering.reader import ReplyReader
from gateway.provider_errors import MAX_TEXT, ProviderFault
from gateway.refusals import RefusedError, models_response
from gateway.tool_filter import filter_tools

_STREAM = "text/event-stream"


class ReplayHandler:
    """Answers the requests of one case."""

    def __init__(self, case: Case) -> None:
        """Read the case's cassette.

        Args:
            case: whose `replayed` is set.

        Raises:
            OSError: there is none, or it can't be read.
            ValueError: none is given, or (CassetteError) the file is none.
        """
        spec = case.spec
        if spec.replayed is None:
            raise ValueError(f"{spec.model}: no cassette is given for {spec.case_id}")
        self._case = case
        self._player = Player(spec.replayed)

    def application(self) -> web.Application:
        """The web application to be served on the case's socket."""
        return application(self._handle)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        exchange = self._case.begin(http.method, http.path)
        try:
            if http.path == MODELS_PATH and http.method in ("GET", "HEAD"):
                return models_response(exchange, self._player.model or self._case.spec.model)
            exchange.api = api_of(http.path)
            incoming = await read(http, exchange.api, exchange, None)
            reply = self._find(exchange, incoming)
            _count(exchange, incoming, reply)
            return await _send(ClawSide(http), reply)
        except RefusedError as refused:
            return refused.response(exchange)
        finally:
            self._case.finish(exchange)

    def _find(self, exchange: Exchange, incoming: Incoming) -> Recorded:
        """The reply to a request (raises RefusedError where it departs from the cassette)."""
        self._case.keep_body(incoming.body)
        filtered = filter_tools(incoming.body, self._case.spec.allowed_tools)
        exchange.offered, exchange.tools = filtered.offered, filtered.passed
        try:
            return self._player.answer(exchange.path, incoming.body)
        except DepartureError as departure:
            self._case.departure = self._case.departure or str(departure)
            # 400, as client libraries try a 409 again, and no repetition brings the request into the cassette
            raise RefusedError(400, f"Replay: {departure}", code="not_in_cassette") from None


def _count(exchange: Exchange, incoming: Incoming, reply: Recorded) -> None:
    """Note what the reply was, as when it was recorded; nothing is charged for it again."""
    exchange.status, exchange.tries = reply.status, 1
    if not 200 <= reply.status < 300:
        fault = _fault(reply)
        exchange.ending, exchange.error = fault.ending, fault.text
        return
    if incoming.counts_tokens:
        exchange.ending = "ok" if reply.complete else "dropped"
        return
    reader = ReplyReader(reply.api, streaming=_streams(reply))
    for chunk in reply.chunks:
        reader.feed(chunk)
    metered = reader.finish(complete=reply.complete)
    exchange.replied, exchange.ending, exchange.error = True, metered.ending, metered.error or None
    exchange.usage, exchange.finish_reason = metered.usage, metered.stop_reason
    exchange.served_model = metered.model


def _fault(reply: Recorded) -> ProviderFault:
    body = b"".join(reply.chunks)
    return ProviderFault(
        status=reply.status,
        headers=CIMultiDict(reply.headers),
        body=body,
        clean=body,
        text=f"HTTP {reply.status}: " + body.decode("utf-8", "replace")[:MAX_TEXT],
        is_transient=pacing.is_transient(reply.status, pacing.parsed(body)),
    )


def _streams(reply: Recorded) -> bool:
    return reply.headers.get("content-type", "").startswith(_STREAM)


async def _send(claw: ClawSide, reply: Recorded) -> web.StreamResponse:
    """Send a reply chunk by chunk as it came, and break off where it broke off."""
    if reply.complete or reply.chunks:
        is_whole = reply.complete and not _streams(reply)
        length = sum(map(len, reply.chunks)) if is_whole else None
        await claw.begin(reply.status, CIMultiDict(reply.headers), length)
    for chunk in reply.chunks:
        await claw.write(chunk)
    return await claw.end() if reply.complete else claw.break_off()
