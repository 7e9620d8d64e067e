"""The server: one provider on a port of this machine, in a thread of its own.

It keeps what it received and what it sent, byte by byte, and what it charged. `troubles` holds what is to go
wrong, one after the other; `delivery` how answers are cut up, packed and kept alive.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from aiohttp import web

from gateway.behaviours.base import Fault, Job
from gateway.behaviours.behaviour_table import PREFIX, parse_model
from gateway.case_models import Api
from gateway.chat_wire import BadRequestError, ChatRequest, Reply
from gateway.scripted import ScriptedModel
from gateway.tokens import count
from support.dialects import reading
from support.dialects.charges import Charge
from support.dialects.delivery import Delivery, Trouble, prepare
from support.dialects.profiles import Dialect
from support.dialects.received import Received, Sent
from support.dialects.refusing import MODELS_PATH, PATHS, THOUGHTS, refusal, thinks
from support.dialects.speaking import Spoken

KEY = "sk-local-4f9a61c07b3d52e8"
MODEL = "vendor/model-1"
TROUBLES: Mapping[Fault, Trouble] = {
    Fault.SERVER_ERROR: Trouble(500),
    Fault.UNAUTHORIZED: Trouble(401),
    Fault.RATE_LIMITED: Trouble(429, headers={"Retry-After": "1"}),
    Fault.MALFORMED: Trouble(half=True),
    Fault.DROPPED: Trouble(cut=0),
}
"""What goes wrong when the scripted model says so."""
_JOB = Job("case", "/testbed", "")


@dataclass(frozen=True)
class Brain:
    """Who answers a conversation."""

    behaviour: str = "noop"
    job: Job = _JOB
    needle: str = ""
    """A text that the conversation must hold, for a server that serves several cases."""

    def model(self) -> ScriptedModel:
        return ScriptedModel(self.job, parse_model(PREFIX + self.behaviour))


Canned = Callable[[Received], "tuple[int, dict[str, str], Sequence[bytes]]"]


class DialectServer:
    """A context manager: inside it the server runs."""

    def __init__(self, dialect: Dialect, *brains: Brain, key: str = KEY, delivery: Delivery | None = None) -> None:
        self.dialect = dialect
        self.key = key
        self.models = [MODEL]
        self.brains = list(brains) or [Brain()]
        self.delivery = delivery or Delivery()
        self.troubles: deque[Trouble] = deque()
        self.canned: deque[Canned] = deque()
        """Whole answers (status, headers, pieces of the body) that come before anything else."""
        self.always: Canned | None = None
        """In place of the brains, where it is set."""
        self.received: list[Received] = []
        self.sent: list[Sent] = []
        self.before_piece: Callable[[int], object] | None = None
        """Called, in a thread, before each piece of an answer is sent, with the piece's number."""
        self.port = 0
        self._measure = dialect.measure()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"dialect-{dialect.name}", daemon=True)
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        """What a provider's entry gives: it ends before /chat/completions."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def charges(self) -> list[Charge]:
        """What was charged so far, reply by reply."""
        return [sent.charge for sent in self.sent if sent.charge]

    def __enter__(self) -> DialectServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(120)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)

    def reset(self, *brains: Brain, delivery: Delivery | None = None) -> None:
        """Forget what was kept and what was to go wrong, and answer in another way; caches stay warm."""
        self.brains = list(brains) or [Brain()]
        self.delivery = delivery or Delivery()
        self.before_piece = self.always = None
        for kept in (self.troubles, self.canned, self.received, self.sent):
            kept.clear()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Bodies are kept as they came: nothing may unpack them on the way.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, auto_decompress=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        received = Received(http.method, http.path_qs, tuple(http.headers.items()), await http.read())
        sent = Sent(200, {})
        self.received.append(received)
        self.sent.append(sent)
        turn = _Turn(self, http, received, sent, PATHS.get(http.path, self.dialect.apis[0]))
        if canned := self.canned.popleft() if self.canned else self.always:
            sent.status, sent.headers, pieces = canned(received)
            return await turn.send(list(pieces))
        if self.troubles:
            turn.trouble = self.troubles.popleft()
        turn.trouble = refusal(self.dialect, received, key=self.key, models=self.models) or turn.trouble
        if turn.trouble.status:
            return await turn.refuse()
        if http.path == MODELS_PATH:
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in self.models]
            return web.json_response({"object": "list", "data": models})
        try:
            return await turn.answer()
        except BadRequestError as error:
            turn.trouble = Trouble(400, str(error))
            return await turn.refuse()

    def brain_for(self, request: ChatRequest) -> Brain:
        """The first that knows the conversation, or the last of all."""
        said = reading.texts(request.messages)
        return next((brain for brain in self.brains if brain.needle in said), self.brains[-1])

    def charge(self, body: Mapping[str, Any], reply: Reply, thoughts: str) -> Charge:
        """Count a reply, and remember its prompt."""
        fresh, read, written = self._measure(body)
        called = f"{reply.call.name}{reply.call.arguments}" if reply.call else ""
        reasoning = count(thoughts)
        output = count(reply.text + called) + reasoning
        return Charge(fresh, read, written, output, reasoning, self.dialect.cost((fresh, read, written, output)))


@dataclass
class _Turn:
    """One request being answered."""

    server: DialectServer
    http: web.Request
    received: Received
    sent: Sent
    api: Api
    trouble: Trouble = Trouble()  # noqa: RUF009 - frozen

    async def refuse(self) -> web.StreamResponse:
        """Answer with the trouble's status."""
        trouble, status = self.trouble, self.trouble.status or 500
        message = trouble.message + (f" The key was {self.server.key}." if "error" in trouble.echo else "")
        body = json.dumps(self.server.dialect.error(status, message, self.api)).encode()
        self.sent.status = status
        self.sent.headers = {"Content-Type": "application/json", **trouble.headers}
        return await self.send([body])

    async def answer(self) -> web.StreamResponse:
        """Let the brain answer."""
        body = self.received.json
        request = reading.read(self.api, body)
        model = self.server.brain_for(request).model()
        reply = model.answer(request, sum(sent.status == 500 for sent in self.server.sent))
        if isinstance(reply, Fault):
            if reply is Fault.HUNG:
                await asyncio.Event().wait()
            self.trouble = TROUBLES[reply]
            if self.trouble.status:
                return await self.refuse()
            reply = Reply("")
        if "body" in self.trouble.echo:
            reply = Reply(f"{reply.text} Your key is {self.server.key}.", reply.call)
        await asyncio.sleep(model.pace.before)
        pieces = self._speak(body, request, reply)
        if "header" in self.trouble.echo:
            self.sent.headers["X-Echo"] = f"Bearer {self.server.key}"
        return await self.send(pieces)

    def _speak(self, body: Mapping[str, Any], request: ChatRequest, reply: Reply) -> list[bytes]:
        dialect, stream = self.server.dialect, bool(body.get("stream"))
        thoughts = THOUGHTS if dialect.thoughts and thinks(body) else ""
        charge = self.server.charge(body, reply, thoughts)
        asked = self.api != "chat" or dialect.usage_unasked or request.wants_usage
        told = self.server.delivery.usage and (asked or not stream)
        usage = dialect.usage(charge, self.api, b'"cache_control"' in self.received.body) if told else None
        self.sent.charge = charge if told else None
        spoken = Spoken(dialect, self.api, body["model"], reply, usage, thoughts)
        pieces, self.sent.headers = prepare(self.server.delivery, spoken, self.trouble, stream=stream)
        return pieces

    async def send(self, pieces: list[bytes]) -> web.StreamResponse:
        """Write the pieces one by one, as far as the trouble lets them through."""
        sent, cut = self.sent, self.trouble.cut
        response = web.StreamResponse(status=sent.status, headers=sent.headers)
        if cut == 0:
            return self._break_off(response)
        await response.prepare(self.http)
        for number, piece in enumerate(pieces):
            if self.server.before_piece:
                await asyncio.to_thread(self.server.before_piece, number)
            kept = piece if cut is None else piece[: cut - len(sent.body)]
            sent.body += kept
            broken = cut == len(sent.body)
            # Before the last is written: a client that has it may look here at once, and may leave as soon.
            sent.complete = number == len(pieces) - 1 and not broken
            await response.write(kept)
            if broken:
                # What is on its way is still to arrive.
                await asyncio.sleep(0.01)
                return self._break_off(response)
            await asyncio.sleep(self.server.delivery.pause)
        await response.write_eof()
        return response

    def _break_off(self, response: web.StreamResponse) -> web.StreamResponse:
        if self.http.transport:
            self.http.transport.abort()
        return response
