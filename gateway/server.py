"""The gateway's process: `python -m gateway.server FOLDER`, started by `gateway.client.Gateway` alone.

It listens on Unix sockets only: `FOLDER/control/s` for the suite, `FOLDER/<n>/s` for each case, every socket
alone in a folder that nobody else can enter. Its standard input is a pipe that the controller holds: the first
line of it is what the process is told (`gateway.config`), the provider's key included; when it ends, the process
does: however the controller dies, the gateway ends too, and takes its folder along.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from aiohttp import web
from pydantic import ValidationError

from gateway import scripted
from gateway.case import Case
from gateway.chat import ChatHandler
from gateway.config import GatewayConfig
from gateway.forwarding import DRAIN_SECONDS
from gateway.models import CaseSpec
from gateway.relay import RelayHandler
from gateway.replay import ReplayHandler
from gateway.tally import RunTally
from gateway.upstream import Line

SOCKET = "s"
_UNHEARD = "n"
"""A socket's name until somebody listens: one that is there and refuses is taken for a dead process's."""
CONTROL = "control"
CLOSING_SECONDS = 0.1
"""How long a request under way may still take when its case is closed."""
ENDING_SECONDS = 3.0
"""How long replies whose claws have left are read on when the process ends."""
REPLAY = "replay:"

Handler = ChatHandler | ReplayHandler | RelayHandler


@dataclass(eq=False)
class _Served:
    case: Case
    handler: Handler
    runner: web.AppRunner
    folder: Path


def runner_of(app: web.Application) -> web.AppRunner:
    """What serves an application of the gateway's, whatever the door: a request's bytes go on as they came."""
    return web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=CLOSING_SECONDS,
        auto_decompress=False,
    )


async def _serve(app: web.Application, folder: Path) -> web.AppRunner:
    folder.mkdir(mode=0o700)
    runner = runner_of(app)
    await runner.setup()
    await web.UnixSite(runner, folder / _UNHEARD).start()
    (folder / _UNHEARD).rename(folder / SOCKET)
    return runner


class Cases:
    """All open cases, and the control endpoints that open and close them."""

    def __init__(self, folder: Path, line: Line | None) -> None:
        """Serve nothing yet.

        Args:
            folder: gets the cases' folders.
            line: to the provider; None: only scripted and replayed models are served.
        """
        self._folder = folder
        self._line = line
        self._numbers = itertools.count()
        self._open: dict[str, _Served] = {}
        self._closing: list[_Served] = []
        self._closed = RunTally()

    def application(self) -> web.Application:
        """The control socket's web application."""
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_get("/alive", self._alive)
        app.router.add_get("/totals", self._totals)
        app.router.add_post("/open", self._open_case)
        app.router.add_post("/counts", self._counts)
        app.router.add_post("/close", self._close_case)
        return app

    async def close(self) -> None:
        """Close every case that is still open."""
        await asyncio.gather(*(self._close(case_id, ENDING_SECONDS) for case_id in list(self._open)))

    async def _alive(self, _http: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _totals(self, _http: web.Request) -> web.Response:
        spending = self._line.spending if self._line else None
        totals = self._closed.totals(
            (served.case.counts() for served in (*self._open.values(), *self._closing)),
            spending.spent if spending else Decimal(0),
            budget_reached=bool(spending and spending.budget_reached),
        )
        return web.Response(text=totals.model_dump_json(), content_type="application/json")

    async def _open_case(self, http: web.Request) -> web.Response:
        try:
            spec = CaseSpec.model_validate_json(await http.read())
            case, handler = self._set_up(spec)
        except (ValidationError, ValueError, OSError) as error:
            return web.Response(status=400, text=str(error))
        await self._close(spec.case_id, DRAIN_SECONDS)
        folder = self._folder / str(next(self._numbers))
        runner = await _serve(handler.application(), folder)
        before = self._open.get(spec.case_id)
        self._open[spec.case_id] = _Served(case, handler, runner, folder)
        if before:
            await self._end(before, DRAIN_SECONDS)
        return web.json_response({"socket": str(folder / SOCKET)})

    def _set_up(self, spec: CaseSpec) -> tuple[Case, Handler]:
        """A case and who answers its requests (raises ValueError, OSError)."""
        if spec.model.startswith(REPLAY):
            case = Case(spec)
            return case, ReplayHandler(case)
        if self._line and spec.model == self._line.upstream.full_name:
            case = Case(spec, self._line.upstream.secrets)
            return case, RelayHandler(case, self._line)
        if self._line and not spec.model.startswith(scripted.PREFIX):
            raise ValueError(f"the run's model is {self._line.upstream.full_name}, not {spec.model}")
        case = Case(spec)
        return case, ChatHandler(case)

    async def _counts(self, http: web.Request) -> web.Response:
        served = self._open.get(await http.text())
        return _counts_response(served)

    async def _close_case(self, http: web.Request) -> web.Response:
        return _counts_response(await self._close(await http.text(), DRAIN_SECONDS))

    async def _close(self, case_id: str, seconds: float) -> _Served | None:
        served = self._open.pop(case_id, None)
        if served:
            await self._end(served, seconds)
        return served

    async def _end(self, served: _Served, seconds: float) -> None:
        """Stop serving; what the provider was asked for may take that many seconds to tell its usage."""
        self._closing.append(served)
        await served.runner.cleanup()
        if isinstance(served.handler, RelayHandler):
            await served.handler.close(seconds)
        self._closing.remove(served)
        self._closed.add(served.case.counts())
        await asyncio.to_thread(shutil.rmtree, served.folder)


def _counts_response(served: _Served | None) -> web.Response:
    if served is None:
        return web.Response(status=404, text="no such case is open")
    return web.Response(text=served.case.counts().model_dump_json(), content_type="application/json")


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
    """Serve until told to end, then leave no socket and no folder behind."""
    end = _watch_for_the_end(asyncio.get_running_loop())
    line = Line(config.upstream, config) if config.upstream else None
    cases = Cases(folder, line)
    try:
        control = await _serve(cases.application(), folder / CONTROL)
        await end.wait()
        await cases.close()
        await control.cleanup()
        if line:
            await line.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told() -> GatewayConfig | None:
    """The first line of standard input; None where it ended before: nobody wants this process any more."""
    first = sys.stdin.buffer.readline()
    return GatewayConfig.model_validate_json(first) if first.endswith(b"\n") else None


if __name__ == "__main__":
    os.umask(0o077)
    told = _told()
    if told:
        asyncio.run(serve(Path(sys.argv[1]), told))
