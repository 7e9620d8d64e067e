"""What a case's socket answers with a real provider behind it: chat/completions, responses and messages.

A request's bytes go on as they came but for what is declared: the key is added on the host, tools are filtered,
and the provider's named transforms apply. There are no control endpoints in here, as in `gateway.chat`.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from gateway import intake
from gateway.case import Case, Exchange
from gateway.forwarding import DRAIN_SECONDS, Forwarding, Prepared
from gateway.intake import Incoming
from gateway.refusals import RefusedError, models_response
from gateway.removed_calls import restore
from gateway.tool_filter import filter_tools
from gateway.transforms import TransformError, Transforms
from gateway.upstream import Line


class RelayHandler:
    """Answers the requests of one case."""

    def __init__(self, case: Case, line: Line) -> None:
        """Take a case that asks for the line's model.

        Args:
            case: whose requests are passed on.
            line: to the provider.
        """
        self._case = case
        self._line = line
        self._transforms = Transforms(line.upstream.provider.transforms)
        self._running: set[asyncio.Task[web.StreamResponse]] = set()

    def application(self) -> web.Application:
        """The web application to be served on the case's socket, by a server that decompresses nothing."""
        return intake.application(self._handle)

    async def close(self, seconds: float) -> None:
        """Wait for replies whose claw has left, to learn their usage; then end them.

        Args:
            seconds: the longest that this may take.
        """
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._line.spending.forget(self._case.spec.case_id)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        exchange = self._case.begin(http.method, http.path)
        forwarding = None
        try:
            if http.path == intake.MODELS_PATH and http.method in ("GET", "HEAD"):
                return models_response(exchange, self._line.upstream.model)
            forwarding = await self._accept(http, exchange)
        except RefusedError as refused:
            return refused.response(exchange)
        finally:
            if forwarding is None:
                self._case.finish(exchange)
        return await self._forward(forwarding)

    async def _accept(self, http: web.Request, exchange: Exchange) -> Forwarding:
        exchange.api = intake.api_of(http.path)
        try:
            incoming = await intake.read(http, exchange.api, exchange, self._line.upstream.model)
            self._case.keep_body(incoming.body)
            prepared = self._prepare(exchange, incoming)
        except RecursionError:
            raise RefusedError(400, "The body is nested too deep.") from None
        return Forwarding(
            case=self._case,
            line=self._line,
            transforms=self._transforms,
            exchange=exchange,
            http=http,
            incoming=incoming,
            prepared=prepared,
        )

    def _prepare(self, exchange: Exchange, incoming: Incoming) -> Prepared:
        filtered = filter_tools(restore(incoming.body), self._case.spec.allowed_tools)
        exchange.offered, exchange.tools = filtered.offered, filtered.passed
        try:
            api, body = self._transforms.request(incoming.api, filtered.request)
        except TransformError as error:
            raise RefusedError(400, str(error)) from None
        provider = self._line.upstream.provider
        if api not in provider.apis:
            known = ", ".join(provider.apis)
            raise RefusedError(404, f"{provider.name} does not speak {api}; it is declared to speak: {known}")
        if body == incoming.body:
            return Prepared(api, incoming.raw, changed=False)
        return Prepared(api, intake.dumped(body), changed=True)

    async def _forward(self, forwarding: Forwarding) -> web.StreamResponse:
        task = asyncio.create_task(forwarding.run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            forwarding.claw.left = True
            if forwarding.is_sent:
                # what was asked for is paid for: its usage is still to be learnt
                timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, task.cancel)
                task.add_done_callback(lambda _: timer.cancel())
            else:
                task.cancel()
            raise
