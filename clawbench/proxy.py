"""The gateway for use without the suite: one provider and one model on a TCP port, counted as a case is.

The same handler answers as on a case's socket; only the door is another. Clients give no key of the provider's. On
an address that others can reach they must give this proxy's own token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from secrets import token_urlsafe

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from clawbench.model_choice import Choice, ModelError
from gateway.case import Case
from gateway.models import CaseCounts, CaseSpec
from gateway.relay import RelayHandler
from gateway.server import ENDING_SECONDS, runner_of
from gateway.upstream import Line


@dataclass(frozen=True)
class Proxy:
    """What is served, and where."""

    choice: Choice
    """Of a provider's model."""
    host: str
    port: int
    """0: any that is free."""
    log: Path
    """Gets a line per request."""
    spend_limit: Decimal | None = None
    """US dollars."""
    cassette: Path | None = None
    """Gets every exchange whole."""

    async def serve(self, say: Callable[[str], None]) -> CaseCounts:
        """Serve until SIGINT or SIGTERM.

        Args:
            say: prints a line: where it is and how to use it, once it listens.

        Returns:
            what was asked for and got.

        Raises:
            ModelError: the model is no provider's.
            OSError: the port or the log can't be had.
        """
        if self.choice.upstream is None:
            raise ModelError(f"{self.choice.model} is no provider's model")
        # what the user's ~/.netrc has for the provider's host is no declared credential
        os.environ["NETRC"] = os.devnull
        end = asyncio.Event()
        # on loopback only this machine's users are
        token = None if _is_loopback(self.host) else token_urlsafe(24)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end.set)
        config = self.choice.gateway_config(self.spend_limit, None, Decimal(0))
        spec = CaseSpec(
            case_id="proxy", model=self.choice.model, request_log=self.log.absolute(), cassette=self.cassette
        )
        async with AsyncExitStack() as stack:
            line = await stack.enter_async_context(Line(self.choice.upstream, config))
            case = Case(spec, self.choice.upstream.secrets)
            handler = RelayHandler(case, line)
            app = handler.application()
            if token is not None:
                app.middlewares.append(_asks_for(token))
            runner = runner_of(app)
            stack.push_async_callback(handler.close, ENDING_SECONDS)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            await web.TCPSite(runner, self.host, self.port, reuse_address=True).start()
            for text in self._how_to(runner.addresses[0][1], token):
                say(text)
            await end.wait()
        return case.counts()

    def _how_to(self, port: int, token: str | None) -> list[str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        address = f"http://{host}:{port}"
        served = self.choice.served
        key = token or "none"
        lines = [f"{self.choice.model} is at {address}/v1; Ctrl-C ends it, and tells what it cost"]
        if served is not None and {"chat", "responses"} & set(served.apis):
            lines.append(f"  OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key}")
        if served is not None and "messages" in served.apis:
            lines.append(f"  ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY={key}")
        if served is not None:
            lines.append(f"  the model is named {served.name}")
        if token is not None:
            lines.append("  clients elsewhere reach it without encryption: use it in networks that you trust")
        return lines


def _asks_for(token: str) -> Middleware:
    """Refuse whoever does not give the token as a key, in any of the ways in which clients send keys."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (bearer, request.headers.get("x-api-key", ""))
        if not any(hmac.compare_digest(one.encode(), token.encode()) for one in given):
            error = {"message": "This gateway asks for its own token as the key.", "type": "authentication_error"}
            return web.json_response({"type": "error", "error": error}, status=401)
        return await handler(request)

    return check


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address (raises OSError for a name that is none)."""
    found = {info[4][0] for info in socket.getaddrinfo(host or "0.0.0.0", None)}  # noqa: S104 - asked, not bound
    return all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)
