"""A reply on its way to the claw: begun once, written in pieces as they come, ended or broken off.

A claw may leave at any time; then what is written is dropped, and nothing fails.
"""

from __future__ import annotations

from aiohttp import web
from multidict import CIMultiDict


class Downstream:
    """The claw's end of an exchange."""

    def __init__(self, http: web.Request) -> None:
        """Nothing is sent yet."""
        self._http = http
        self._response: web.StreamResponse | None = None
        self.left = False
        """Whether the claw has left."""
        self.lost = False
        """Whether there was more to send when it left: a claw that leaves at a reply's end has all of it."""

    @property
    def begun(self) -> bool:
        """Whether a reply has begun, be it only with its head."""
        return self._response is not None

    async def begin(self, status: int, headers: CIMultiDict[str], length: int | None) -> None:
        """Send a reply's head.

        Args:
            status: of the reply.
            headers: of the reply.
            length: its bytes, if that is known.
        """
        self._response = web.StreamResponse(status=status, headers=headers)
        if length is not None:
            self._response.content_length = length
        if self.left:
            self.lost = True
            return
        try:
            await self._response.prepare(self._http)
        except ConnectionError:
            self.left = self.lost = True

    async def write(self, data: bytes) -> None:
        """Send a piece of a reply's body at once."""
        if self._response is None or not data:
            return
        if not self.left:
            try:
                await self._response.write(data)
            except ConnectionError:
                self.left = True
            else:  # a claw that has gone causes no exception before the next piece
                self.left = self._http.transport is None or self._http.transport.is_closing()
        self.lost = self.lost or self.left

    async def end(self) -> web.StreamResponse:
        """The reply is complete."""
        response = self._response or web.Response()
        if not self.left and self._response is not None:
            try:
                await self._response.write_eof()
            except ConnectionError:
                self.left = True
        return response

    def break_off(self) -> web.StreamResponse:
        """Close the connection, so that nobody takes the reply for complete."""
        if self._http.transport:
            self._http.transport.close()
        return self._response or web.Response()
