"""A provider's answer that is no reply: what it means for the case, and how it goes on to the claw."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aiohttp import ClientResponse
from multidict import CIMultiDict

from gateway import headers, pacing, redact
from gateway.metering.decoding import BrokenEncodingError, decoder_of
from gateway.models import Ending

MAX_BODY = 1024 * 1024
"""The most bytes of an error that are read."""
MAX_TEXT = 500
"""The most characters of an error that the log keeps."""
_NO_SUCH_MODEL = re.compile(
    r"not a valid model|model_not_found|\bmodel\b.{0,100}?(not exist|not found)", re.IGNORECASE | re.DOTALL
)
"""OpenRouter and DeepSeek say with status 400 that there is no such model; others say it with 404."""


@dataclass(frozen=True)
class ProviderFault:
    """An answer with a status that is no success; no key is in it."""

    status: int
    headers: CIMultiDict[str]
    body: bytes
    """As it goes on to the claw, maybe compressed."""
    clean: bytes
    """The same, decoded."""
    text: str
    """Its beginning, for the log."""
    is_transient: bool
    """Whether it is a rate limit or an overload, which a later try may not meet."""

    @property
    def ending(self) -> Ending:
        """What it is for the case.

        A refused key and an account without money are the account's; an address that is not there, like a model
        that is not, is the provider's or the run's. Neither is the claw's, as a malformed request is.
        """
        if self.status in (401, 402, 403):
            return "unauthorized"
        if self.status == 429 or (self.is_transient and self.status < 500):
            return "rate_limited"
        if self.status >= 500 or self.status < 400 or self.status in (404, 405, 408):
            return "server_error"
        if _NO_SUCH_MODEL.search(self.text):
            return "server_error"
        return "refused"


async def read_fault(reply: ClientResponse, secrets: tuple[str, ...]) -> ProviderFault:
    """Read such an answer to its end (raises aiohttp.ClientError where it breaks off).

    Args:
        reply: the answer, with its body unread.
        secrets: what it must not hold.
    """
    body = bytearray()
    async for chunk in reply.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            break
    raw = bytes(body[:MAX_BODY])
    encoding = reply.headers.get("Content-Encoding", "")
    try:
        decoded = decoder_of(encoding).feed(raw)
        is_readable = True
    except BrokenEncodingError:
        decoded, is_readable = b"", False
    clean = redact.mask_bytes(decoded, secrets)
    shown = headers.for_claw((name, redact.mask(value, secrets)) for name, value in reply.headers.items())
    if not is_readable or clean != decoded:
        shown.popall("Content-Encoding", None)
        raw = clean
    return ProviderFault(
        status=reply.status,
        headers=shown,
        body=raw,
        clean=clean,
        text=f"HTTP {reply.status}: " + clean.decode("utf-8", "replace")[:MAX_TEXT],
        is_transient=pacing.is_transient(reply.status, pacing.parsed(decoded)),
    )
