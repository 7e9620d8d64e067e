"""The provider's rate limits, enforced on the host: when a request is sent, and whether it is sent again.

Cases take turns: a case with many requests waits behind its own, not in front of another's. No minute holds more
than the limit: a request counts from when it was admitted, with an estimate of its tokens that its reply corrects.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
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
"""Seconds before the first retry if the provider names no time; they double with each retry up to the longest."""
LONGEST_RETRY_AFTER = 300.0
"""Seconds that a claw's request waits at most. A rate limit that asks for more is a refusal of the account."""
JITTER = 0.25
"""The largest random part of a delay, so that cases that were refused together do not retry together."""
_TRANSIENT = frozenset(
    {"429", "529", "engine_overloaded", "overloaded_error", "rate_limit_error", "rate_limit_exceeded"}
)
"""What providers call a rate limit or an overload: Anthropic ("Errors"), OpenAI ("Error codes"), OpenRouter (codes
are HTTP statuses), vLLM."""
_OF_THE_ACCOUNT = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_user_quota",
        "blocked_api_access",
        "arrearage",
        "accountoverdueerror",
        "1113",
    }
)
"""What providers call an account without money or quota, in lower case: OpenAI, Moonshot, DashScope (Arrearage),
Volcengine (AccountOverdueError), Groq (blocked_api_access), one-api, Zhipu (1113). A retry cannot help."""
_ACCOUNT_WORDS = re.compile(
    r"your credit balance is too low|insufficient (balance|credits?|funds|quota)\b|"
    r"your account .{0,80}(suspended|in arrears|overdue|is not active|no longer active)|"
    r"access denied, please make sure your account is in good standing|you have run out of credits|"
    r"your team .{0,80}(used all available credits|spending limit)|余额不足|您的账户已欠费",
    re.IGNORECASE,
)
"""The beginnings of such messages, where type and code say nothing (Anthropic: `invalid_request_error`). Only a message's
beginning is searched: the rest may quote what the claw sent."""


@dataclass(eq=False)
class Admission:
    """A request that was admitted; its tokens count for a minute."""

    at: float
    tokens: float


@dataclass(eq=False)
class _Waiter:
    tokens: float
    admitted: asyncio.Future[Admission] = field(default_factory=asyncio.Future)


class Pacer:
    """Admits requests, one provider's for all cases."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        """Enforce a limit by a clock of seconds."""
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
            while_waiting: entered only if the request has to wait.
        """
        waiter = _Waiter(tokens)
        self._queues.setdefault(case, deque()).append(waiter)
        self._admit_due()
        if not waiter.admitted.done():
            try:
                with while_waiting():
                    await waiter.admitted
            except asyncio.CancelledError:
                self._leave(case, waiter)
                raise
        return waiter.admitted.result()

    def correct(self, admission: Admission, tokens: float) -> None:
        """Replace a request's estimate by the tokens that it used."""
        admission.tokens = tokens
        self._admit_due()

    def close_for(self, seconds: float) -> None:
        """The provider has asked not to send anything for this many seconds."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _leave(self, case: str, waiter: _Waiter) -> None:
        queue = self._queues.get(case)
        if queue and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._queues[case]
        elif waiter.admitted.done() and not waiter.admitted.cancelled():
            # it was admitted and never sent
            waiter.admitted.result().tokens = 0
        self._admit_due()

    def _admit_due(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._queues:
            case, queue = next(iter(self._queues.items()))
            delay = self._delay(queue[0].tokens)
            if delay > 0:
                self._timer = asyncio.get_running_loop().call_later(delay, self._admit_due)
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
        """Seconds until a request of so many tokens may be sent, as far as is known now."""
        now = self._clock()
        # less than one request per minute is one request in a longer time
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

        A request that exceeds the limit of a minute alone waits for an empty minute.
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
    """Whether an error is a rate limit or an overload, so that a later try may succeed.

    Args:
        status: of the reply. 503 is a temporary overload (RFC 9110, 15.6.4), as OpenAI's and DeepSeek's lists of
            errors have it.
        body: its JSON; None if it is not JSON.
    """
    kinds = _error_kinds(body)
    if is_of_the_account(body):
        return False
    if status in (429, 503, 529):
        return True
    return bool(kinds & _TRANSIENT)


def is_of_the_account(body: object) -> bool:
    """Whether an error says that the account has no money or no quota left, whatever its status."""
    error = body.get("error") or body if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    kinds = {kind.lower() for kind in _error_kinds(body)}
    return bool(kinds & _OF_THE_ACCOUNT) or (
        isinstance(message, str) and bool(_ACCOUNT_WORDS.match(message.strip()))
    )


def _error_kinds(body: object) -> set[str]:
    """The types and codes in an error of any provider's shape; a code may be an HTTP status."""
    error = body.get("error") or body if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return set()
    return {str(error[key]) for key in ("type", "code", "status") if error.get(key) is not None}


def retry_delay(headers: Mapping[str, str], tries: int, now: Callable[[], float] = time.time) -> float:
    """Seconds to wait before the next try, jitter included.

    Args:
        headers: of the reply; `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or `retry-after-ms`. A time
            that is shorter than the first delay, or past, is not believed.
        tries: how many there were so far.
        now: a clock of seconds since the epoch.
    """
    asked = asked_delay(headers, now)
    is_named = asked is not None and asked >= FIRST_DELAY
    backoff = min(FIRST_DELAY * 2 ** (tries - 1), LONGEST_DELAY)
    delay = min(asked, LONGEST_RETRY_AFTER) if asked is not None and is_named else backoff
    return delay * (1 + JITTER * random.random())  # noqa: S311 - chance, no secret


def asked_delay(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """The seconds that a reply asks to wait; None if it does not ask."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        seconds = _number(value)
        if seconds is not None:
            return max(0.0, seconds * unit)
        if value and name == "retry-after":
            try:
                return max(0.0, parsedate_to_datetime(value).timestamp() - now())
            except ValueError:
                return None
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
