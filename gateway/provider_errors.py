"""A provider's error response: what it means for the case, and what of it is passed on to the claw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import ClientResponse
from multidict import CIMultiDict

from gateway import pacing, redact
from gateway.case_models import Ending
from gateway.exchange import plain
from gateway.headers import for_claw, is_compressed
from gateway.sse import json_or_none

MAX_BODY = 1024 * 1024
"""The most bytes of an error that are read."""
MAX_TEXT = 500
"""The most characters of an error that the log keeps."""
_NO_SUCH_MODEL = re.compile(
    r"not a valid model|model_not_found|\bmodel\b.{0,100}?(not exist|not found)", re.IGNORECASE | re.DOTALL
)
"""OpenRouter and DeepSeek report an unknown model with status 400; others with 404."""

_FLAGGED = re.compile(r"flagged_input|moderation|content_policy|data_inspection_failed", re.IGNORECASE)
"""A 403 with these words refuses what the claw sent (OpenRouter's moderation)."""


@dataclass(frozen=True)
class ProviderFault:
    """A response whose status is not a success; it holds no key."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_unreadable: bool = False
    """Whether the body was compressed, which nobody asked for, and dropped."""

    @property
    def text(self) -> str:
        """Its beginning, for the log."""
        return plain(f"HTTP {self.status}: " + self.body.decode("utf-8", "replace")[:MAX_TEXT])

    @property
    def is_transient(self) -> bool:
        """Whether it is a rate limit or an overload, so that a later try may succeed."""
        return not self.refuses_account and pacing.is_transient(self.status, json_or_none(self.body))

    @property
    def refuses_account(self) -> bool:
        """Whether the provider refuses the key or the account: wrong, without money or quota, or shut out for long.

        No claw can cause this: the gateway sets the key. A 403 may also be a moderation of what the claw sent.
        """
        asked = pacing.asked_delay(self.headers)
        is_shut_out = self.status == 429 and asked is not None and asked > pacing.LONGEST_RETRY_AFTER
        return self.status in (401, 402) or is_shut_out or pacing.is_of_the_account(json_or_none(self.body))

    @property
    def ending(self) -> Ending:
        """How the request ended.

        A refused key and an account without money are the account's fault; an address or a model that does not
        exist is the provider's or the run's. Only a malformed request is the claw's fault.
        """
        if self.refuses_account or (self.status == 403 and not _FLAGGED.search(self.text)):
            return "unauthorized"
        if self.status == 429 or (self.is_transient and self.status < 500):
            return "rate_limited"
        if self.status >= 500 or self.status < 400 or self.status in (404, 405, 408):
            return "server_error"
        if _NO_SUCH_MODEL.search(self.text):
            return "server_error"
        return "malformed" if self.is_unreadable else "refused"


async def read_fault(reply: ClientResponse, secrets: tuple[str, ...]) -> ProviderFault:
    """Read an error response to its end; the body of a compressed one is dropped.

    Args:
        reply: the response, with its body unread.
        secrets: keys to mask.

    Raises:
        aiohttp.ClientError: it breaks off.
    """
    body = bytearray()
    is_unreadable = is_compressed(reply.headers)
    if not is_unreadable:
        async for chunk in reply.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                break
    clean = redact.mask_bytes(bytes(body), secrets)[:MAX_BODY]
    return ProviderFault(reply.status, shown_headers(reply, secrets), clean, is_unreadable)


def shown_headers(reply: ClientResponse, secrets: tuple[str, ...]) -> CIMultiDict[str]:
    """The headers of a response for the claw, without keys."""
    return for_claw((name, redact.mask(value, secrets)) for name, value in reply.headers.items())
