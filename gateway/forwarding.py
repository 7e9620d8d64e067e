"""One request on its way to the provider, and its reply on its way back: limits, retries, metering, no key.

It outlives the claw's own connection: what the provider was asked for is paid for, so a reply whose claw has left
is read on for a while to learn its usage.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientResponse, ConnectionTimeoutError, ServerTimeoutError, web
from multidict import CIMultiDict

from gateway import pacing, redact
from gateway.case import Case, Exchange
from gateway.claw_side import ClawSide
from gateway.intake import Incoming
from gateway.metering.decoding import BrokenEncodingError
from gateway.metering.reader import Metered, ReplyReader
from gateway.models import Api, Ending
from gateway.pacing import Admission
from gateway.passing import Passing, Unmetered
from gateway.provider_errors import ProviderFault, read_fault
from gateway.refusals import RefusedError
from gateway.removed_calls import ReplyFilter
from gateway.transforms import ReplyConverter, Transforms
from gateway.upstream import Line, Sending

DRAIN_SECONDS = 20.0
"""For how long a reply is read on whose claw has left."""
BYTES_PER_TOKEN = 4
"""Of a request whose tokens are not known yet; its reply corrects the estimate."""
MAX_PEEK = 65536
"""Bytes of a reply's first piece that is looked at for an error, in place of the reply."""


@dataclass(frozen=True)
class Prepared:
    """A request as it goes out."""

    api: Api
    """The wire format in which it is sent, which a transform may have changed."""
    data: bytes
    changed: bool
    """Whether the data are others than the claw's."""


@dataclass(frozen=True)
class _Later:
    """The try was in vain; when the next is due."""

    seconds: float


class Forwarding:
    """One request and its reply."""

    def __init__(
        self,
        *,
        case: Case,
        line: Line,
        transforms: Transforms,
        exchange: Exchange,
        http: web.Request,
        incoming: Incoming,
        prepared: Prepared,
    ) -> None:
        self._case = case
        self._line = line
        self._transforms = transforms
        self._exchange = exchange
        self._http = http
        self._incoming = incoming
        self._prepared = prepared
        self._secrets = line.upstream.secrets
        self._headers = line.headers(http.headers, changed=prepared.changed)
        self._admission = Admission(0.0, 0.0)
        self._sent_at, self._received = 0.0, 0
        self._kept: list[bytes] = []
        self._inner_errors: list[dict[str, Any]] = []
        self._is_held = True
        """Whether it waits here for a rate limit, or for its next try."""
        self.claw = ClawSide(http)
        self._is_at_fault = False
        """Whether the reply itself was at fault: a claw that leaves at that did not leave by itself."""
        self.is_sent = False
        """Whether the provider has the request, and may charge for it."""

    async def run(self) -> web.StreamResponse:
        """Get a reply and pass it on."""
        exchange = self._exchange
        try:
            return await self._try_on()
        except RefusedError as refused:
            return refused.response(exchange)
        except asyncio.CancelledError:
            if self.is_sent:
                self._settle(Metered("dropped"))
            raise
        finally:
            left = self.claw.lost or (self.claw.left and exchange.ending not in ("ok", "empty"))
            if left and not self._is_at_fault:
                exchange.ending = "held_back" if self._is_held else "client_gone"
            elif exchange.ending is None:  # what nobody foresaw is not the claw's doing
                exchange.ending, exchange.error = "server_error", "the gateway failed; gateway.log tells how"
            self._case.finish(exchange)

    async def _try_on(self) -> web.StreamResponse:
        case, exchange, provider = self._case, self._exchange, self._line.upstream.provider
        for tries in itertools.count(1):
            self._check_budget()
            self._admission = await self._line.pacer.admit(
                case.spec.case_id, self._incoming.size / BYTES_PER_TOKEN, lambda: case.waiting(exchange)
            )
            self._is_held = False
            try:
                self._check_budget()
            except RefusedError:
                self._line.pacer.correct(self._admission, 0)
                raise
            exchange.tries, exchange.first_byte = tries, None
            result = await self._try(may_retry=tries <= provider.retries)
            if not isinstance(result, _Later):
                return result
            self._line.pacer.correct(self._admission, 0)
            self._is_held = True
            with case.waiting(exchange):
                await asyncio.sleep(result.seconds)
        raise AssertionError("the tries are not bounded here")

    def _check_budget(self) -> None:
        if not self._incoming.counts_tokens and (why := self._line.spending.refusal(self._case.spec.case_id)):
            raise RefusedError(402, f"Not sent: {why}.", ending="budget", code="spend_limit_reached")

    async def _try(self, *, may_retry: bool) -> web.StreamResponse | _Later:
        self._sent_at, self.is_sent = time.monotonic(), True
        sending = Sending()
        try:
            async with self._line.send(
                self._prepared.api,
                self._prepared.data,
                self._headers,
                self._http.query,
                counts_tokens=self._incoming.counts_tokens,
                sending=sending,
            ) as reply:
                if 200 <= reply.status < 300:
                    return await self._pass_reply(reply, may_retry=may_retry)
                return await self._pass_fault(await read_fault(reply, self._secrets), may_retry=may_retry)
        except ServerTimeoutError as error:
            if isinstance(error, ConnectionTimeoutError):
                raise self._no_reply(502, "dropped", "the provider can't be reached in time") from None
            timeout = self._line.upstream.provider.timeout
            raise self._no_reply(504, "hung", f"the provider did not answer within {timeout:g} s") from None
        except ClientError as error:
            if sending.on_used_connection and may_retry and not self.claw.left:
                # the provider closed an idle connection at the moment at which it was used again
                self.is_sent = False
                return _Later(0.0)
            text = redact.mask(f"{type(error).__name__}: {error}", self._secrets)
            raise self._no_reply(502, "dropped", f"the connection to the provider broke: {text}") from None

    def _no_reply(self, status: int, ending: Ending, text: str) -> RefusedError:
        self.is_sent = False
        self._line.pacer.correct(self._admission, 0)
        return RefusedError(status, text, ending=ending)

    async def _pass_fault(self, fault: ProviderFault, *, may_retry: bool) -> web.StreamResponse | _Later:
        self.is_sent = False
        if fault.is_transient and may_retry and not self.claw.left:
            return self._later(fault)
        exchange = self._exchange
        exchange.status, exchange.ending, exchange.error = fault.status, fault.ending, fault.text
        exchange.upstream_seconds = time.monotonic() - self._sent_at
        self._line.pacer.correct(self._admission, 0)
        await self.claw.begin(fault.status, fault.headers, len(fault.body))
        await self.claw.write(fault.body)
        self._keep(fault.clean)
        self._record(fault.headers)
        return await self.claw.end()

    def _later(self, fault: ProviderFault) -> _Later:
        asked = pacing.asked_delay(fault.headers)
        if fault.status == 429 and asked:
            # the limit is the account's, so the other cases need not find it out by themselves
            self._line.pacer.close_for(asked)
        return _Later(pacing.retry_delay(fault.headers, self._exchange.tries))

    async def _pass_reply(self, reply: ClientResponse, *, may_retry: bool) -> web.StreamResponse | _Later:
        exchange = self._exchange
        exchange.status = reply.status
        told = "Content-Type" in reply.headers
        streaming = reply.content_type == "text/event-stream" if told else self._incoming.streams
        encoding = reply.headers.get("Content-Encoding", "")
        reader = self._reader(streaming=streaming, encoding=encoding)
        calls = self._calls()
        passing = Passing(self._secrets, encoding, self._converter(streaming=streaming), calls)
        shown, length = passing.head(reply)
        self._inner_errors.clear()
        self._kept.clear()
        ending: Ending | None = None
        complete, error = False, ""
        try:
            async for chunk in reply.content.iter_any():
                if exchange.first_byte is None:
                    exchange.first_byte = time.monotonic() - self._sent_at
                decoded = reader.feed(chunk)
                self._received += len(decoded)
                if may_retry and not self.claw.begun and self._is_overload(decoded):
                    self.is_sent = False
                    return _Later(pacing.retry_delay({}, exchange.tries))
                onward = passing.feed(chunk, decoded)
                if not self.claw.begun:
                    await self.claw.begin(reply.status, shown, length)
                await self.claw.write(onward, says=bool(decoded))
                self._keep(decoded if passing.is_compressed else onward)
            complete = True
        except (redact.KeyFoundError, BrokenEncodingError) as broken:
            ending, error = "server_error", str(broken)
        except ServerTimeoutError:
            ending, error = "hung", "the reply did not go on"
        except ClientError as broken:
            error = f"the reply broke off: {type(broken).__name__}"
        metered = reader.finish(complete=complete)
        self._settle(metered, ending, error)
        if not complete:
            self._record(shown, complete=False)
            return self.claw.break_off()
        if not self.claw.begun:
            await self.claw.begin(reply.status, shown, length)
        last = passing.finish()
        exchange.removed_calls = tuple(calls.renamed) if calls else ()
        self._keep(last)
        await self.claw.write(last)
        self._record(shown)
        return await self.claw.end()

    def _keep(self, piece: bytes) -> None:
        if piece and self._case.records:
            self._kept.append(piece)

    def _record(self, shown: CIMultiDict[str], *, complete: bool = True) -> None:
        # a reply that its claw left in the middle is none to be replayed: there it would come whole
        if not self.claw.lost and self._case.records:
            self._case.record(
                self._exchange, self._incoming.decoded, headers=shown, chunks=self._kept, complete=complete
            )

    def _reader(self, *, streaming: bool, encoding: str) -> ReplyReader | Unmetered:
        if self._incoming.counts_tokens:
            return Unmetered()
        listeners = [*self._transforms.listeners(self._prepared.api), self._watch]
        return ReplyReader(self._prepared.api, streaming=streaming, encoding=encoding, listeners=listeners)

    def _converter(self, *, streaming: bool) -> ReplyConverter | None:
        if self._prepared.api == self._incoming.api:
            return None
        return ReplyConverter(streaming, self._incoming.body)

    def _calls(self) -> ReplyFilter | None:
        removed = self._case.removed_tools
        if not removed or self._incoming.counts_tokens:
            return None
        return ReplyFilter(self._incoming.api, removed, self._exchange.tools)

    def _watch(self, event: dict[str, Any]) -> None:
        if not self.claw.begun and (event.get("error") or event.get("type") == "error"):
            self._inner_errors.append(event)

    def _is_overload(self, first: bytes) -> bool:
        """Whether the reply, of which nothing has been passed on yet, is no reply but an overload."""
        if first.lstrip()[:20].startswith(b'{"error"') and len(first) <= MAX_PEEK:
            return pacing.is_transient(200, pacing.parsed(first))
        return any(pacing.is_transient(200, event) for event in self._inner_errors)

    def _settle(self, metered: Metered, ending: Ending | None = None, error: str = "") -> None:
        """The reply is over: count it."""
        exchange, spending = self._exchange, self._line.spending
        self.is_sent = False
        exchange.ending = ending or metered.ending
        self._is_at_fault = ending is None and metered.ending in ("server_error", "rate_limited", "malformed")
        exchange.upstream_seconds = time.monotonic() - self._sent_at
        exchange.error = redact.mask(error or metered.error, self._secrets) or None
        if self._incoming.counts_tokens:
            return
        exchange.replied = True
        exchange.usage, exchange.told = metered.usage, metered.told_cost
        exchange.finish_reason = metered.stop_reason and redact.mask(metered.stop_reason, self._secrets)
        exchange.served_model = metered.model and redact.mask(metered.model, self._secrets)
        exchange.priced = spending.price(metered.usage, exchange.arrived)
        exchange.held = spending.add(
            self._case.spec.case_id,
            priced=exchange.priced,
            told=exchange.told,
            usage=exchange.usage,
            size=(self._incoming.size, self._received),
            when=exchange.arrived,
        )
        if metered.usage:
            self._line.pacer.correct(self._admission, metered.usage.known)
