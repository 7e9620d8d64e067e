"""Serves a case from its cassette: equal requests get the same replies, others learn where they differ."""

from __future__ import annotations

from aiohttp import web
from multidict import CIMultiDict

from gateway.case_handler import CaseHandler
from gateway.case_models import Cost
from gateway.cassette import Player, Recorded, ReplayDiffError
from gateway.downstream import Downstream
from gateway.exchange import Exchange
from gateway.metering.reader import ReplyReader
from gateway.open_case import Case
from gateway.provider_errors import ProviderFault
from gateway.refusals import RefusedError
from gateway.request_parser import Incoming
from gateway.tool_filter import filter_tools


class ReplayHandler(CaseHandler):
    """Answers the requests of one case."""

    def __init__(self, case: Case) -> None:
        """Read the case's cassette.

        Args:
            case: whose `replayed` is set.

        Raises:
            OSError: the cassette cannot be read.
            ValueError: none is given, or the file is not a cassette (CassetteError).
        """
        spec = case.spec
        if spec.replayed is None:
            raise ValueError(f"{spec.model}: no cassette is given for {spec.case_id}")
        self._player = Player(spec.replayed)
        super().__init__(case, model=self._player.model or spec.model, only=False)

    async def answer(self, http: web.Request, exchange: Exchange, incoming: Incoming) -> web.StreamResponse:
        """Send the recorded reply."""
        filtered = filter_tools(incoming.body, self.case.spec.allowed_tools)
        exchange.note_tools(filtered.offered, filtered.passed)
        if not incoming.counts_tokens:
            self.case.note_first(exchange, incoming.api, filtered.request)
        try:
            reply = self._player.answer(exchange.path, incoming.body)
        except ReplayDiffError as error:
            self.case.replay_diff = self.case.replay_diff or str(error)
            # 400, as client libraries retry a 409, and no retry brings the request into the cassette
            raise RefusedError(400, f"Replay: {error}", code="not_in_cassette") from None
        _count(exchange, incoming, reply)
        return await _send(Downstream(http), reply)


def _count(exchange: Exchange, incoming: Incoming, reply: Recorded) -> None:
    """Note what the reply was, as when it was recorded; it costs nothing now."""
    exchange.status, exchange.tries = reply.status, 1
    if not 200 <= reply.status < 300:
        fault = ProviderFault(reply.status, reply.headers, b"".join(reply.chunks))
        exchange.ending, exchange.error = fault.ending, fault.text
        return
    if incoming.counts_tokens:
        exchange.ending = "ok" if reply.complete else "dropped"
        return
    reader = ReplyReader(reply.api, streaming=_is_stream(reply))
    for chunk in reply.chunks:
        reader.feed(chunk)
    metered = reader.finish(complete=reply.complete)
    exchange.ending, exchange.error = metered.ending, metered.error or None
    exchange.replied, exchange.cost = True, Cost(unpriced=1)
    exchange.tokens, exchange.finish_reason = metered.usage, metered.stop_reason
    exchange.served_model = metered.model


def _is_stream(reply: Recorded) -> bool:
    return reply.headers.get("content-type", "").startswith("text/event-stream")


async def _send(claw: Downstream, reply: Recorded) -> web.StreamResponse:
    """Send a reply chunk by chunk as it came, and break off where it broke off."""
    if reply.complete or reply.chunks:
        is_whole = reply.complete and not _is_stream(reply)
        length = sum(map(len, reply.chunks)) if is_whole else None
        await claw.begin(reply.status, CIMultiDict(reply.headers), length)
    for chunk in reply.chunks:
        await claw.write(chunk)
    return await claw.end() if reply.complete else claw.break_off()
