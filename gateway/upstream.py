"""The way to the provider: one per process, shared by all cases. The key is added here, and is nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import (
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    TraceConfig,
    TraceConnectionReuseconnParams,
)
from aiohttp.client import _RequestContextManager
from multidict import CIMultiDict

from gateway import headers
from gateway.config import GatewayConfig, Upstream
from gateway.models import Api
from gateway.pacing import Pacer
from gateway.spend import Spending

CONNECT_SECONDS = 30.0
_SUFFIXES: Mapping[Api, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
_COUNT_SUFFIX = "/messages/count_tokens"
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that the client would add of its own: the provider gets what the claw sent."""


@dataclass
class Sending:
    """What became known while a request was sent."""

    on_used_connection: bool = False
    """Whether it went over a connection that was kept from an earlier request."""


async def _note_used(_session: ClientSession, context: Any, _params: TraceConnectionReuseconnParams) -> None:
    context.trace_request_ctx.on_used_connection = True


class Line:
    """A provider's line, with what is shared by all who use it. An asynchronous context manager."""

    def __init__(self, upstream: Upstream, config: GatewayConfig) -> None:
        """Open it; needs a running event loop."""
        provider = upstream.provider
        self.upstream = upstream
        self.pacer = Pacer(provider.rate_limit)
        self.spending = Spending(
            config.prices,
            run_limit=config.spend_limit,
            case_limit=config.case_spend_limit,
            before=config.spent_before,
        )
        trace = TraceConfig()
        trace.on_connection_reuseconn.append(_note_used)
        # Certificates are verified; there is no switch for it. The host's proxies (HTTPS_PROXY, …) are used.
        self._session = ClientSession(
            connector=TCPConnector(limit=0),
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=provider.timeout),
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=_NOT_ADDED,
            auto_decompress=False,
            trust_env=True,
            trace_configs=[trace],
        )

    def send(
        self,
        api: Api,
        body: bytes,
        sent_headers: CIMultiDict[str],
        query: Mapping[str, str],
        *,
        counts_tokens: bool,
        sending: Sending,
    ) -> _RequestContextManager:
        """Send a request; the reply is this context's.

        Args:
            api: the wire format.
            body: as it goes out.
            sent_headers: from `headers`.
            query: from the claw's address, as far as it passes.
            counts_tokens: whether it asks for the number of tokens alone.
            sending: gets what becomes known on the way.
        """
        suffix = _COUNT_SUFFIX if counts_tokens else _SUFFIXES[api]
        return self._session.post(
            self.upstream.provider.base_url + suffix,
            data=body,
            headers=sent_headers,
            params=headers.query_for_provider(query),
            # the key goes to the address that was declared and to no other
            allow_redirects=False,
            trace_request_ctx=sending,
        )

    def headers(self, of_claw: Mapping[str, str], *, changed: bool) -> CIMultiDict[str]:
        """The headers of a request, with the key.

        Args:
            of_claw: as they came.
            changed: whether the body is another, which is not compressed.
        """
        upstream = self.upstream
        key = upstream.key.get_secret_value() if upstream.key else None
        passed = headers.for_provider(
            of_claw, auth=upstream.provider.auth, key=key, declared=upstream.provider.headers
        )
        if changed:
            passed.popall("Content-Encoding", None)
        return passed

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
