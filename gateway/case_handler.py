"""What all kinds of models have in common: a case's socket answers model requests and the list of models, no more.

It has no control endpoints, so whoever holds a case's socket can only talk to its model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from aiohttp import web

from gateway.case_models import Api
from gateway.exchange import Exchange
from gateway.open_case import Case
from gateway.refusals import RefusedError
from gateway.request_parser import MAX_BODY, PATHS, Incoming, read

MODELS_PATH = "/v1/models"


class CaseHandler(ABC):
    """Answers the requests of one case, and counts and logs every one of them, refused ones included."""

    paths: ClassVar[Mapping[str, Api]] = PATHS

    def __init__(self, case: Case, *, model: str, only: bool) -> None:
        """Take a case.

        Args:
            case: whose requests are answered.
            model: the one in the list of models.
            only: whether requests for other models are refused.
        """
        self.case = case
        self._model = model
        self._only = only

    def application(self) -> web.Application:
        """The web application for the case's socket. Its server must not decompress anything."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, http: web.Request) -> web.StreamResponse:
        """Answer a request."""
        exchange = self.case.begin(http.method, http.path)
        try:
            if http.path == MODELS_PATH and http.method in ("GET", "HEAD"):
                exchange.status, exchange.ending = 200, "ok"
                model = {"id": self._model, "object": "model", "created": 0, "owned_by": "clawbench"}
                return web.json_response({"object": "list", "data": [model]})
            incoming = await read(http, exchange, self._model if self._only else None, self.paths)
            self.case.keep_body(incoming.body)
            return await self.answer(http, exchange, incoming)
        except RefusedError as refused:
            return refused.response(exchange)
        except RecursionError:
            return RefusedError(400, "The body is nested too deep.").response(exchange)
        finally:
            self.case.finish(exchange)

    @abstractmethod
    async def answer(self, http: web.Request, exchange: Exchange, incoming: Incoming) -> web.StreamResponse:
        """Answer a request for the model.

        Args:
            http: the request.
            exchange: gets the ending.
            incoming: what was asked for.

        Raises:
            RefusedError: the answer is an error of the gateway's own.
        """
