"""The HTTP client for the provider: one per process, shared by all cases. Only here is the key added."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.client import _RequestContextManager
from multidict import CIMultiDict

from gateway import headers
from gateway.case_models import API_PATHS, Api
from gateway.config import GatewayConfig, Upstream
from gateway.pacing import Pacer
from gateway.spend import Spending

CONNECT_SECONDS = 30.0
_COUNT_SUFFIX = "/messages/count_tokens"
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add: the provider gets those of the claw."""


class ProviderClient:
    """The connections to one provider, its rate limit and the run's spending, shared by all cases."""

    def __init__(self, upstream: Upstream, config: GatewayConfig) -> None:
        """Set it up; needs a running event loop."""
        provider = upstream.provider
        self.upstream = upstream
        self.pacer = Pacer(provider.rate_limit)
        self.account_refusal = ""
        """The provider's words, if it last refused the key or the account; "" after any reply."""
        self.spending = Spending(
            config.prices,
            run_limit=config.spend_limit,
            case_limit=config.case_spend_limit,
            before=config.spent_before,
        )
        # Certificates are always verified. The host's proxies (HTTPS_PROXY, …) are used.
        self._session = ClientSession(
            # A provider may close an idle connection just when it is used again. Nobody could tell then whether it
            # got the request, so each request has a connection of its own.
            connector=TCPConnector(limit=0, force_close=True),
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=provider.timeout),
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=_NOT_ADDED,
            auto_decompress=False,
            trust_env=True,
        )

    def send(
        self,
        api: Api,
        body: bytes,
        sent_headers: CIMultiDict[str],
        query: Mapping[str, str],
        *,
        counts_tokens: bool,
    ) -> _RequestContextManager:
        """Send a request.

        Args:
            api: the wire format.
            body: as it goes out.
            sent_headers: from `headers`.
            query: of the claw's URL; only listed parameters pass.
            counts_tokens: whether it only asks for the number of tokens.

        Returns:
            the context of the reply.
        """
        suffix = _COUNT_SUFFIX if counts_tokens else API_PATHS[api]
        return self._session.post(
            self.upstream.provider.base_url + suffix,
            data=body,
            headers=sent_headers,
            params=headers.query_for_provider(query),
            # the key goes to the declared address and to no other
            allow_redirects=False,
        )

    def headers(self, of_claw: Mapping[str, str]) -> CIMultiDict[str]:
        """The headers of a request, with the key."""
        upstream = self.upstream
        key = upstream.key.get_secret_value() if upstream.key else None
        provider = upstream.provider
        return headers.for_provider(of_claw, auth=provider.auth, key=key, declared=provider.headers)

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()
