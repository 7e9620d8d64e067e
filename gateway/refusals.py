"""The gateway's own errors, in the shape that the claw's client library expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from common.errors import ClawbenchError
from gateway.case_models import Api, Ending
from gateway.exchange import Exchange, plain


class RefusedError(ClawbenchError):
    """A request is answered by the gateway itself, with an error; the message is for the claw."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        ending: Ending = "refused",
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(plain(message))
        self.status = status
        self.ending: Ending = ending
        self.code = code
        self.headers = headers

    def response(self, exchange: Exchange) -> web.Response:
        """The answer, which is also noted in the exchange."""
        exchange.status, exchange.ending, exchange.error = self.status, self.ending, str(self)
        body = error_body(exchange.api, self.status, str(self), self.code)
        return web.json_response(body, status=self.status, headers=self.headers)


_ANTHROPIC = {
    400: "invalid_request_error",
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    504: "timeout_error",
}
"""Anthropic's types of errors, by status (its documentation, "Errors")."""
_OPENAI = {
    402: "insufficient_quota",
    429: "requests",
    500: "server_error",
    502: "server_error",
    504: "server_error",
}


def error_body(api: Api | None, status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """An error as the provider of this wire format would write it."""
    if api == "messages":
        kind = _ANTHROPIC.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    kind = _OPENAI.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
