"""One request on its way to the provider, and its reply on its way back: limits, retries, metering, key masking.

It outlives the claw's own connection: the provider charges for every request it got, so a reply whose claw has
left is still read for a while to learn its usage.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ConnectionTimeoutError,
    ServerTimeoutError,
    web,
)
from multidict import CIMultiDict

from gateway import pacing, redact
from gateway.case_models import Cost, Ending
from gateway.downstream import Downstream
from gateway.exchange import Exchange, plain
from gateway.headers import is_compressed
from gateway.metering.reader import Listener, Metered, ReplyReader
from gateway.open_case import Case
from gateway.pacing import Admission
from gateway.provider_client import ProviderClient
from gateway.provider_errors import ProviderFault, read_fault, shown_headers
from gateway.refusals import RefusedError
from gateway.removed_calls import CallRenamer
from gateway.reply_filter import ReplyFilter
from gateway.request_parser import Incoming
from gateway.spend import Reservation
from gateway.sse import EventTooLargeError, json_or_none

DRAIN_SECONDS = 20.0
"""How long a reply whose claw has left is still read."""
BYTES_PER_TOKEN = 4
"""The estimate for a request whose tokens are not known yet; its reply corrects it."""
MAX_PEEK = 65536
"""The first piece of a reply is searched for an error in place of the reply up to this many bytes."""


@dataclass(frozen=True)
class _RetryAfter:
    """The try failed; the next one is due in so many seconds."""

    seconds: float


class Forwarding:
    """One request and its reply."""

    def __init__(
        self,
        *,
        case: Case,
        client: ProviderClient,
        exchange: Exchange,
        http: web.Request,
        incoming: Incoming,
        data: bytes,
        listeners: Sequence[Listener],
    ) -> None:
        """Prepare to forward a request.

        Args:
            case: whose request it is.
            client: of the provider.
            exchange: gets what becomes of the request.
            http: the claw's connection.
            incoming: the claw's request.
            data: the body as it goes out.
            listeners: of the reply.
        """
        self._case = case
        self._client = client
        self._exchange = exchange
        self._http = http
        self._incoming = incoming
        self._data = data
        self._listeners = listeners
        self._secrets = client.upstream.secrets
        self._headers = client.headers(http.headers)
        self._admission = Admission(0.0, 0.0)
        self._reservation: Reservation | None = None
        self._reader: ReplyReader | None = None
        self._sent_at, self._received = 0.0, 0
        self._kept: list[bytes] = []
        self._inner_errors: list[dict[str, Any]] = []
        self._is_held_back = True
        """Whether it waits here for a rate limit, or for its next try."""
        self.claw = Downstream(http)
        self._is_at_fault = False
        """Whether the reply itself was at fault: a claw that leaves because of it did not leave by itself."""
        self.is_sent = False
        """Whether the provider has the request, and may charge for it."""

    async def run(self) -> web.StreamResponse:
        """Get a reply and pass it on."""
        exchange = self._exchange
        try:
            return await self._try_until_answered()
        except RefusedError as refused:
            return refused.response(exchange)
        except asyncio.CancelledError:
            if self.is_sent:
                # what the reply has told so far still counts
                self._settle(self._reader.finish(complete=False) if self._reader else Metered("dropped"))
            raise
        finally:
            self._release()
            left = self.claw.lost or (self.claw.left and exchange.ending not in ("ok", "empty"))
            if left and not self._is_at_fault:
                exchange.ending = "held_back" if self._is_held_back else "client_gone"
            elif exchange.ending is None:  # an unexpected exception: not the claw's fault
                exchange.ending, exchange.error = "server_error", "the gateway failed; see gateway.log"

    async def _try_until_answered(self) -> web.StreamResponse:
        case, exchange, provider = self._case, self._exchange, self._client.upstream.provider
        estimate = len(self._incoming.raw) / BYTES_PER_TOKEN
        for tries in itertools.count(1):
            await self._reserve()
            self._admission = await self._client.pacer.admit(
                case.spec.case_id, estimate, lambda: case.waiting(exchange)
            )
            self._is_held_back = False
            exchange.tries, exchange.first_byte = tries, None
            result = await self._try(may_retry=tries <= provider.retries)
            if not isinstance(result, _RetryAfter):
                return result
            self._client.pacer.correct(self._admission, 0)
            self._release()
            self._is_held_back = True
            with case.waiting(exchange):
                await asyncio.sleep(result.seconds)
        raise AssertionError("the loop has no end")

    async def _reserve(self) -> None:
        """Reserve what the request may cost; waits for other requests if too little is left (raises RefusedError)."""
        if self._incoming.counts_tokens:
            return
        case, exchange, incoming = self._case, self._exchange, self._incoming
        made = await self._client.spending.reserve(
            case.spec.case_id, incoming.body, len(incoming.raw), exchange.time, lambda: case.waiting(exchange)
        )
        if isinstance(made, str):
            raise RefusedError(402, f"Not sent: {made}.", ending="cost_limit", code="spend_limit_reached")
        self._reservation = made

    def _release(self) -> None:
        if self._reservation is not None:
            self._client.spending.release(self._reservation)
            self._reservation = None

    async def _try(self, *, may_retry: bool) -> web.StreamResponse | _RetryAfter:
        self._sent_at, self.is_sent = time.monotonic(), True
        incoming = self._incoming
        request = self._client.send(
            incoming.api, self._data, self._headers, self._http.query, counts_tokens=incoming.counts_tokens
        )
        try:
            async with request as reply:
                if not 200 <= reply.status < 300:
                    return await self._pass_fault(await read_fault(reply, self._secrets), may_retry=may_retry)
                if is_compressed(reply.headers):
                    self._settle(Metered("malformed"))
                    text = "the provider compressed its reply although it was asked not to"
                    raise RefusedError(502, text, ending="malformed")
                return await self._pass_reply(reply, may_retry=may_retry)
        except ServerTimeoutError as error:
            if isinstance(error, ConnectionTimeoutError):
                raise self._not_sent("no connection to the provider in time") from None
            timeout = self._client.upstream.provider.timeout
            text = f"the provider did not answer within {timeout:g} s"
            raise self._no_reply(504, "hung", text) from None
        except ClientConnectorError as error:
            raise self._not_sent(redact.mask(f"no connection to the provider: {error}", self._secrets)) from None
        except ClientError as error:
            text = redact.mask(f"{type(error).__name__}: {error}", self._secrets)
            raise self._no_reply(502, "dropped", f"the connection to the provider broke: {text}") from None

    def _not_sent(self, text: str) -> RefusedError:
        """The provider never got the request."""
        self.is_sent = False
        self._client.pacer.correct(self._admission, 0)
        return RefusedError(502, text, ending="dropped")

    def _no_reply(self, status: int, ending: Ending, text: str) -> RefusedError:
        """The provider got the request, and may charge for it, so it is not sent again."""
        self._settle(Metered("dropped"), ending, text)
        return RefusedError(status, text, ending=ending)

    async def _pass_fault(self, fault: ProviderFault, *, may_retry: bool) -> web.StreamResponse | _RetryAfter:
        self.is_sent = False
        exchange, pacer = self._exchange, self._client.pacer
        if fault.is_transient and may_retry and not self.claw.left:
            asked = pacing.asked_delay(fault.headers)
            if fault.status == 429 and asked:
                # the limit is the account's, so it holds for the other cases too
                pacer.close_for(asked)
            return _RetryAfter(pacing.retry_delay(fault.headers, exchange.tries))
        exchange.status, exchange.ending, exchange.error = fault.status, fault.ending, fault.text
        if fault.refuses_account:
            self._client.account_refusal = fault.text
        exchange.upstream_seconds = time.monotonic() - self._sent_at
        pacer.correct(self._admission, 0)
        await self.claw.begin(fault.status, CIMultiDict(fault.headers), len(fault.body))
        await self.claw.write(fault.body)
        self._keep(fault.body)
        self._record(fault.headers, complete=True)
        return await self.claw.end()

    async def _pass_reply(self, reply: ClientResponse, *, may_retry: bool) -> web.StreamResponse | _RetryAfter:
        exchange = self._exchange
        exchange.status = reply.status
        has_type = "Content-Type" in reply.headers
        streaming = reply.content_type == "text/event-stream" if has_type else self._incoming.streams
        reader = ReplyReader(self._incoming.api, streaming=streaming, listeners=[*self._listeners, self._watch])
        self._reader = reader
        reply_filter = self._reply_filter()
        shown = shown_headers(reply, self._secrets)
        length = reply.content_length if reply_filter.keeps_length else None
        self._inner_errors.clear()
        self._kept.clear()
        ending: Ending | None = None
        complete, error = False, ""
        try:
            async for chunk in reply.content.iter_any():
                if exchange.first_byte is None:
                    exchange.first_byte = time.monotonic() - self._sent_at
                reader.feed(chunk)
                self._received += len(chunk)
                if may_retry and not self.claw.begun and self._is_overload(chunk):
                    self.is_sent = False
                    return _RetryAfter(pacing.retry_delay({}, exchange.tries))
                onward = reply_filter.feed(chunk)
                if not self.claw.begun:
                    await self.claw.begin(reply.status, shown, length)
                await self.claw.write(onward)
                self._keep(onward)
            complete = True
        except EventTooLargeError as broken:
            ending, error = "malformed", str(broken)
        except ServerTimeoutError:
            ending, error = "hung", "the reply stopped before its end"
        except ClientError as broken:
            error = f"the reply broke off: {type(broken).__name__}"
        if self._incoming.counts_tokens:
            metered = Metered("ok" if complete else "dropped")
        else:
            metered = reader.finish(complete=complete)
        self._settle(metered, ending, error)
        if complete:
            if not self.claw.begun:
                await self.claw.begin(reply.status, shown, length)
            last = reply_filter.finish()
            exchange.removed_calls = tuple(map(plain, reply_filter.removed_calls))
            await self.claw.write(last)
            self._keep(last)
        self._record(shown, complete=complete)
        return await self.claw.end() if complete else self.claw.break_off()

    def _keep(self, piece: bytes) -> None:
        if piece and self._case.recorder:
            self._kept.append(piece)

    def _record(self, shown: Mapping[str, str], *, complete: bool) -> None:
        # a reply that its claw left in the middle is not recorded: a replay would send all of it
        if not self.claw.lost and self._case.recorder:
            self._case.recorder.record(
                self._exchange, self._incoming.raw, headers=shown, chunks=self._kept, complete=complete
            )

    def _reply_filter(self) -> ReplyFilter:
        removed = self._case.removed_tools
        if not removed or self._incoming.counts_tokens:
            return ReplyFilter(self._secrets, None)
        return ReplyFilter(self._secrets, CallRenamer(self._incoming.api, removed, self._exchange.tools))

    def _watch(self, event: dict[str, Any]) -> None:
        if not self.claw.begun and (event.get("error") or event.get("type") == "error"):
            self._inner_errors.append(event)

    def _is_overload(self, first: bytes) -> bool:
        """Whether an overload came in place of the reply, of which nothing has been passed on yet."""
        if first.lstrip()[:20].startswith(b'{"error"') and len(first) <= MAX_PEEK:
            return pacing.is_transient(200, json_or_none(first))
        return any(pacing.is_transient(200, event) for event in self._inner_errors)

    def _settle(self, metered: Metered, ending: Ending | None = None, error: str = "") -> None:
        """The reply is over: count it."""
        exchange, spending = self._exchange, self._client.spending
        self.is_sent = False
        exchange.ending = ending or metered.ending
        self._is_at_fault = ending is None and metered.ending in ("server_error", "rate_limited", "malformed")
        exchange.upstream_seconds = time.monotonic() - self._sent_at
        exchange.error = plain(redact.mask(error or metered.error, self._secrets)) or None
        if self._incoming.counts_tokens:
            return
        exchange.replied, exchange.tokens = True, metered.usage
        if exchange.ending in ("ok", "empty"):
            self._client.account_refusal = ""
        exchange.finish_reason = metered.stop_reason and plain(redact.mask(metered.stop_reason, self._secrets))
        exchange.served_model = metered.model and plain(redact.mask(metered.model, self._secrets))
        priced = spending.price(metered.usage, exchange.time) if not metered.surcharges else None
        if self._reservation is None:
            raise RuntimeError("a reply is counted that nothing was reserved for")
        held = spending.add(
            self._reservation,
            known=[cost for cost in (priced, metered.told_cost) if cost is not None],
            usage=metered.usage,
            received=self._received,
            when=exchange.time,
            has_surcharge=bool(metered.surcharges),
        )
        exchange.cost = Cost(priced=priced, told=metered.told_cost, unpriced=int(priced is None), held=held)
        exchange.surcharges = tuple(map(plain, metered.surcharges))
        if metered.usage:
            self._client.pacer.correct(self._admission, metered.usage.known)
