"""Errors of the gateway's own, in the shape that the claw's client library knows."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gateway import wire
from gateway.case import Exchange
from gateway.models import Api, Ending


class RefusedError(Exception):
    """A request that does not go to the provider; the message is for the client."""

    def __init__(self, status: int, message: str, *, ending: Ending = "refused", code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.ending: Ending = ending
        self.code = code

    def response(self, exchange: Exchange) -> web.Response:
        """The answer, noted in the exchange."""
        exchange.status, exchange.ending = self.status, self.ending
        exchange.error = str(self)
        body = error_body(exchange.api, self.status, str(self), self.code)
        return web.json_response(body, status=self.status)


_ANTHROPIC = {
    400: "invalid_request_error",
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    504: "timeout_error",
}
"""Anthropic's types of errors, by status (its documentation, "Errors")."""
_OPENAI = {402: "insufficient_quota", 502: "server_error", 504: "server_error"}


def error_body(api: Api | None, status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """An error as the provider of this wire format would say it."""
    if api == "messages":
        kind = _ANTHROPIC.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    return wire.error_body(message, _OPENAI.get(status, "invalid_request_error"), code)


def models_response(exchange: Exchange, model: str) -> web.Response:
    """The list of models: the one of the run."""
    exchange.status, exchange.ending = 200, "ok"
    told = {"id": model, "object": "model", "created": 0, "owned_by": "clawbench"}
    return web.json_response({"object": "list", "data": [told]})
