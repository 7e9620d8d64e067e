"""A case whose model is a real provider's: chat/completions, responses and messages.

A request's bytes go on as they came, with the declared exceptions: the key is added on the host, tools are
filtered, and the provider's named transforms apply.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from gateway import request_parser
from gateway.case_handler import CaseHandler
from gateway.exchange import Exchange
from gateway.forwarding import DRAIN_SECONDS, Forwarding
from gateway.open_case import Case
from gateway.provider_client import ProviderClient
from gateway.refusals import RefusedError
from gateway.request_parser import Incoming
from gateway.tool_filter import filter_tools
from gateway.transforms import Transforms


class RelayHandler(CaseHandler):
    """Forwards the requests of one case."""

    def __init__(self, case: Case, client: ProviderClient) -> None:
        """Take a case that asks for the client's model."""
        super().__init__(case, model=client.upstream.model, only=True)
        self._client = client
        self._transforms = Transforms(client.upstream.provider.transforms)
        self._running: dict[asyncio.Task[web.StreamResponse], Forwarding | None] = {}

    async def handle(self, http: web.Request) -> web.StreamResponse:
        """Answer a request. It outlives a claw that leaves: a reply is paid for, so its usage is still read."""
        task = asyncio.create_task(super().handle(http))
        self._running[task] = None
        task.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            forwarding = self._running.get(task)
            if forwarding:
                forwarding.claw.left = True
            if forwarding and forwarding.is_sent:
                timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, task.cancel)
                task.add_done_callback(lambda _: timer.cancel())
            else:
                task.cancel()
            raise

    async def answer(self, http: web.Request, exchange: Exchange, incoming: Incoming) -> web.StreamResponse:
        """Forward a request and its reply."""
        forwarding = Forwarding(
            case=self.case,
            client=self._client,
            exchange=exchange,
            http=http,
            incoming=incoming,
            data=self._prepare(exchange, incoming),
            listeners=self._transforms.listeners(incoming.api),
        )
        task = asyncio.current_task()
        if task in self._running:
            self._running[task] = forwarding
        return await forwarding.run()

    def _prepare(self, exchange: Exchange, incoming: Incoming) -> bytes:
        """The request's body as it goes out."""
        filtered = filter_tools(incoming.body, self.case.spec.allowed_tools)
        exchange.note_tools(filtered.offered, filtered.passed)
        provider = self._client.upstream.provider
        if incoming.api not in provider.apis:
            known = ", ".join(provider.apis)
            text = f"{provider.name} does not speak {incoming.api}; it is declared to speak: {known}"
            raise RefusedError(404, text)
        body = self._transforms.request(incoming.api, filtered.request)
        if not incoming.counts_tokens:
            self.case.note_first(exchange, incoming.api, body)
        return incoming.raw if body == incoming.body else request_parser.dumped(body)

    async def close(self, seconds: float) -> None:
        """Wait for replies whose claw has left, to read their usage; then end them."""
        if self._running:
            _, late = await asyncio.wait(list(self._running), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._client.spending.forget(self.case.spec.case_id)
