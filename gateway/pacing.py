"""The provider's rate limits, kept on the host: who is let through when, and what is sent once more.

Cases take turns: a case that asks for much waits behind its own requests, not in front of another's. No minute
holds more than the limit, as counted here: a request counts from when it was let through, with an estimate of its
tokens that its reply's usage corrects.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from gateway.providers import RateLimit

MINUTE = 60.0
FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
"""Seconds before the first retry where the provider names no time, and the most to which they double."""
LONGEST_RETRY_AFTER = 300.0
"""Seconds that are waited at most where the provider asks for more."""
JITTER = 0.25
"""The part of a delay, at most, that chance adds: cases that were refused together don't come back together."""
_TRANSIENT = frozenset(
    {"429", "529", "engine_overloaded", "overloaded_error", "rate_limit_error", "rate_limit_exceeded"}
)
"""What providers call a rate limit or an overload: Anthropic ("Errors"), OpenAI ("Error codes"), OpenRouter (codes
are HTTP statuses), vLLM."""
_FINAL = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
"""Errors with a rate limit's status that no waiting mends."""


@dataclass(eq=False)
class Admission:
    """A request that was let through; its tokens count until a minute has passed."""

    at: float
    tokens: float


@dataclass(eq=False)
class _Waiter:
    tokens: float
    admitted: asyncio.Future[Admission] = field(default_factory=asyncio.Future)


class Pacer:
    """Lets requests through, one provider's for all cases."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep a limit (None: no limit) by a clock of seconds."""
        self._clock = clock
        self._requests = limit.requests_per_minute
        self._tokens = limit.tokens_per_minute
        self._admitted: deque[Admission] = deque()
        self._queues: dict[str, deque[_Waiter]] = {}
        self._closed_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def admit(
        self, case: str, tokens: float, while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Admission:
        """Wait for this case's turn.

        Args:
            case: whose request it is.
            tokens: an estimate of what it will use.
            while_waiting: is entered only where there is something to wait for.
        """
        waiter = _Waiter(tokens)
        self._queues.setdefault(case, deque()).append(waiter)
        self._let_through()
        if not waiter.admitted.done():
            try:
                with while_waiting():
                    await waiter.admitted
            except asyncio.CancelledError:
                self._leave(case, waiter)
                raise
        return waiter.admitted.result()

    def correct(self, admission: Admission, tokens: float) -> None:
        """A request's reply has told how many tokens it used."""
        admission.tokens = tokens
        self._let_through()

    def close_for(self, seconds: float) -> None:
        """The provider has named a time before which nothing should be sent."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _leave(self, case: str, waiter: _Waiter) -> None:
        queue = self._queues.get(case)
        if queue and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._queues[case]
        elif waiter.admitted.done() and not waiter.admitted.cancelled():
            # it was let through and never sent
            waiter.admitted.result().tokens = 0
        self._let_through()

    def _let_through(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._queues:
            case, queue = next(iter(self._queues.items()))
            delay = self._delay(queue[0].tokens)
            if delay > 0:
                self._timer = asyncio.get_running_loop().call_later(delay, self._let_through)
                return
            waiter = queue.popleft()
            # the next turn is another case's
            del self._queues[case]
            if queue:
                self._queues[case] = queue
            if waiter.admitted.cancelled():
                continue
            admission = Admission(self._clock(), waiter.tokens)
            if self._requests or self._tokens:
                self._admitted.append(admission)
            waiter.admitted.set_result(admission)

    def _delay(self, tokens: float) -> float:
        """Seconds until a request of so many tokens may pass, as far as is known now."""
        now = self._clock()
        # a limit below one in a minute is one in a longer time
        span = max(MINUTE, MINUTE / self._requests) if self._requests else MINUTE
        while self._admitted and self._admitted[0].at + span <= now:
            self._admitted.popleft()
        delay = self._closed_until - now
        if self._requests:
            most = max(1, math.floor(self._requests))
            if len(self._admitted) >= most:
                delay = max(delay, self._admitted[-most].at + span - now)
        if self._tokens:
            delay = max(delay, self._delay_for_tokens(tokens, now))
        return delay

    def _delay_for_tokens(self, tokens: float, now: float) -> float:
        """Seconds until enough of the last minute's tokens are a minute old.

        A request that is too big for any minute waits for an empty one.
        """
        limit = self._tokens or math.inf
        recent = [admission for admission in self._admitted if admission.at + MINUTE > now]
        excess = sum(admission.tokens for admission in recent) + min(tokens, limit) - limit
        delay = 0.0
        for admission in recent:
            if excess <= 0:
                break
            excess -= admission.tokens
            delay = admission.at + MINUTE - now
        return delay


def is_transient(status: int, body: object) -> bool:
    """Whether an error is a rate limit or an overload, which a later try may not meet.

    Args:
        status: of the reply. 503 is a temporary overload (RFC 9110, 15.6.4), as OpenAI's and DeepSeek's lists of
            errors have it.
        body: its JSON.
    """
    kinds = _error_kinds(body)
    if kinds & _FINAL:
        return False
    if status in (429, 503, 529):
        return True
    return bool(kinds & _TRANSIENT)


def parsed(body: bytes) -> object:
    """A body's JSON; None where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error_kinds(body: object) -> set[str]:
    """The types and codes that an error in any provider's shape names; a code may be an HTTP status."""
    error = body.get("error") or body if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return set()
    return {str(error[key]) for key in ("type", "code", "status") if error.get(key) is not None}


def retry_delay(headers: Mapping[str, str], tries: int, now: Callable[[], float] = time.time) -> float:
    """Seconds to wait before the next try, jitter included.

    Args:
        headers: of the reply; `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or `retry-after-ms`.
        tries: how many there were.
        now: the time in seconds since the epoch.
    """
    asked = asked_delay(headers, now)
    delay = min(FIRST_DELAY * 2 ** (tries - 1), LONGEST_DELAY) if asked is None else asked
    return delay * (1 + JITTER * random.random())  # noqa: S311 - chance, no secret


def asked_delay(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """The seconds that a reply asks to wait, at most `LONGEST_RETRY_AFTER`; None where it names none."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        seconds = _number(value)
        if seconds is not None:
            return min(max(0.0, seconds * unit), LONGEST_RETRY_AFTER)
        if value and name == "retry-after":
            try:
                return min(max(0.0, parsedate_to_datetime(value).timestamp() - now()), LONGEST_RETRY_AFTER)
            except ValueError:
                return None
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
