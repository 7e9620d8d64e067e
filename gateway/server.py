"""The gateway's process: `python -m gateway.server FOLDER`, started only by `gateway.client.Gateway`.

It listens on Unix sockets only: `FOLDER/control/s` for the suite, `FOLDER/<n>/s` for each case, each socket alone
in a folder that nobody else can enter. Its standard input is a pipe from the controller. The first line is its
configuration (`gateway.config`), with the provider's key. When the pipe ends, the process removes its folder and
ends: it cannot outlive the controller.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from gateway.behaviours.behaviour_table import PREFIX
from gateway.case_handler import CaseHandler
from gateway.case_models import CaseSpec
from gateway.config import GatewayConfig
from gateway.forwarding import DRAIN_SECONDS
from gateway.open_case import Case
from gateway.provider_client import ProviderClient
from gateway.relay import RelayHandler
from gateway.replay import ReplayHandler
from gateway.scripted_handler import ScriptedHandler

SOCKET = "s"
_NOT_LISTENING = "n"
"""A socket's name until the process listens: a socket that refuses connections is taken for a dead process's."""
CONTROL = "control"
CLOSING_SECONDS = 0.1
"""How long a request in progress may still take when its case is closed."""
ENDING_SECONDS = 3.0
"""How long replies whose claws have left are still read when the process ends."""
REPLAY = "replay:"


@dataclass(eq=False)
class _Served:
    handler: CaseHandler
    runner: web.AppRunner
    folder: Path

    def counts(self) -> web.Response:
        return web.Response(text=self.handler.case.counts().model_dump_json(), content_type="application/json")


async def _serve(app: web.Application, folder: Path) -> web.AppRunner:
    folder.mkdir(mode=0o700)
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=CLOSING_SECONDS,
        auto_decompress=False,
    )
    await runner.setup()
    await web.UnixSite(runner, folder / _NOT_LISTENING).start()
    (folder / _NOT_LISTENING).rename(folder / SOCKET)
    return runner


class Cases:
    """All open cases, and the control endpoints that open and close them."""

    def __init__(self, folder: Path, client: ProviderClient | None) -> None:
        """Serve nothing yet.

        Args:
            folder: gets the cases' folders.
            client: of the provider; None: only scripted and replayed models are served.
        """
        self._folder = folder
        self._client = client
        self._numbers = itertools.count()
        self._open: dict[str, _Served] = {}

    def application(self) -> web.Application:
        """The control socket's web application."""
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_get("/limit", self._limit)
        app.router.add_get("/account", self._account)
        app.router.add_post("/open", self._open_case)
        app.router.add_post("/counts", self._counts)
        app.router.add_post("/close", self._close_case)
        return app

    async def close(self) -> None:
        """Close every case that is still open."""
        await asyncio.gather(*(self._close(case_id, ENDING_SECONDS) for case_id in list(self._open)))

    async def _limit(self, _http: web.Request) -> web.Response:
        return web.json_response(bool(self._client and self._client.spending.cost_limit_reached))

    async def _account(self, _http: web.Request) -> web.Response:
        return web.json_response(self._client.account_refusal if self._client else "")

    async def _open_case(self, http: web.Request) -> web.Response:
        try:
            spec = CaseSpec.model_validate_json(await http.read())
            handler = self._handler(spec)
        except (ValueError, OSError) as error:
            return web.Response(status=400, text=str(error))
        await self._close(spec.case_id, DRAIN_SECONDS)
        folder = self._folder / str(next(self._numbers))
        runner = await _serve(handler.application(), folder)
        before = self._open.get(spec.case_id)
        self._open[spec.case_id] = _Served(handler, runner, folder)
        if before:
            await self._end(before, DRAIN_SECONDS)
        return web.json_response({"socket": str(folder / SOCKET)})

    def _handler(self, spec: CaseSpec) -> CaseHandler:
        """The handler of a case's requests (raises ValueError, OSError)."""
        if spec.model.startswith(REPLAY):
            return ReplayHandler(Case(spec))
        if self._client and spec.model == self._client.upstream.full_name:
            return RelayHandler(Case(spec, self._client.upstream.secrets), self._client)
        if self._client and not spec.model.startswith(PREFIX):
            raise ValueError(f"the run's model is {self._client.upstream.full_name}, not {spec.model}")
        return ScriptedHandler(Case(spec))

    async def _counts(self, http: web.Request) -> web.Response:
        served = self._open.get(await http.text())
        return served.counts() if served else _not_open()

    async def _close_case(self, http: web.Request) -> web.Response:
        served = await self._close(await http.text(), DRAIN_SECONDS)
        return served.counts() if served else _not_open()

    async def _close(self, case_id: str, seconds: float) -> _Served | None:
        served = self._open.pop(case_id, None)
        if served:
            await self._end(served, seconds)
        return served

    async def _end(self, served: _Served, seconds: float) -> None:
        """Stop serving; replies in progress get that many seconds to tell their usage."""
        await served.runner.cleanup()
        if isinstance(served.handler, RelayHandler):
            await served.handler.close(seconds)
        await asyncio.to_thread(shutil.rmtree, served.folder)


def _not_open() -> web.Response:
    return web.Response(status=404, text="no such case is open")


def _watch_for_the_end(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    """An event that is set when standard input ends, or at a signal to end."""
    end = asyncio.Event()
    stdin = sys.stdin.fileno()

    def read() -> None:
        if not os.read(stdin, 4096):
            loop.remove_reader(stdin)
            end.set()

    loop.add_reader(stdin, read)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    return end


async def serve(folder: Path, config: GatewayConfig) -> None:
    """Serve until told to end, then remove all sockets and folders."""
    end = _watch_for_the_end(asyncio.get_running_loop())
    client = ProviderClient(config.upstream, config) if config.upstream else None
    cases = Cases(folder, client)
    try:
        control = await _serve(cases.application(), folder / CONTROL)
        await end.wait()
        await cases.close()
        await control.cleanup()
        if client:
            await client.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os.umask(0o077)
    line = sys.stdin.buffer.readline()
    if line.endswith(b"\n"):  # otherwise the parent has exited
        asyncio.run(serve(Path(sys.argv[1]), GatewayConfig.model_validate_json(line)))
