"""The gateway's process: `python -m gateway.server FOLDER`, started by `gateway.client.Gateway` alone.

It listens on Unix sockets only: `FOLDER/control/s` for the suite, `FOLDER/<n>/s` for each case, every socket
alone in a folder that nobody else can enter. It ends when its standard input does, which is a pipe that the
controller holds: however the controller dies, the gateway ends too, and takes its folder along.
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
from pydantic import ValidationError

from gateway.case import Case
from gateway.chat import ChatHandler
from gateway.models import CaseSpec

SOCKET = "s"
CONTROL = "control"
CLOSING_SECONDS = 0.1
"""How long a request under way may still take when its case is closed."""


@dataclass
class _Served:
    case: Case
    runner: web.AppRunner
    folder: Path


async def _serve(app: web.Application, folder: Path) -> web.AppRunner:
    folder.mkdir(mode=0o700)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS)
    await runner.setup()
    await web.UnixSite(runner, folder / SOCKET).start()
    return runner


class Cases:
    """All open cases, and the control endpoints that open and close them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._open: dict[str, _Served] = {}
        self._lock = asyncio.Lock()

    def application(self) -> web.Application:
        """The control socket's web application."""
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_get("/alive", self._alive)
        app.router.add_post("/open", self._open_case)
        app.router.add_post("/counts", self._counts)
        app.router.add_post("/close", self._close_case)
        return app

    async def close(self) -> None:
        """Close every case that is still open."""
        for case_id in list(self._open):
            await self._close(case_id)

    async def _alive(self, _http: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _open_case(self, http: web.Request) -> web.Response:
        try:
            spec = CaseSpec.model_validate_json(await http.read())
            case = Case(spec)
        except (ValidationError, ValueError) as error:
            return web.Response(status=400, text=str(error))
        async with self._lock:
            await self._close(spec.case_id)
            folder = self._folder / str(next(self._numbers))
            runner = await _serve(ChatHandler(case).application(), folder)
            self._open[spec.case_id] = _Served(case, runner, folder)
        return web.json_response({"socket": str(folder / SOCKET)})

    async def _counts(self, http: web.Request) -> web.Response:
        served = self._open.get(await http.text())
        return _counts_response(served)

    async def _close_case(self, http: web.Request) -> web.Response:
        async with self._lock:
            served = await self._close(await http.text())
        return _counts_response(served)

    async def _close(self, case_id: str) -> _Served | None:
        served = self._open.pop(case_id, None)
        if served:
            await served.runner.cleanup()
            await asyncio.to_thread(shutil.rmtree, served.folder)
        return served


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


async def serve(folder: Path) -> None:
    """Serve until told to end, then leave no socket and no folder behind."""
    end = _watch_for_the_end(asyncio.get_running_loop())
    cases = Cases(folder)
    try:
        control = await _serve(cases.application(), folder / CONTROL)
        await end.wait()
        await cases.close()
        await control.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os.umask(0o077)
    asyncio.run(serve(Path(sys.argv[1])))
