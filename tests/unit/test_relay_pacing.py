"""Rate limits on the host: no minute holds more than the limit, cases take turns, and what is tried again when."""

from __future__ import annotations

import asyncio
import json
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.pacing import (
    JITTER,
    LONGEST_DELAY,
    LONGEST_RETRY_AFTER,
    MINUTE,
    Pacer,
    asked_delay,
    is_transient,
    retry_delay,
)
from gateway.providers import RateLimit
from gateway.sse import json_or_none


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def pacer(clock: Clock, **limit: float) -> Pacer:
    return Pacer(RateLimit(**limit), clock)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Queue:
    """Requests that ask to be let through, and the order in which they were."""

    def __init__(self, served: Pacer) -> None:
        self.pacer = served
        self.passed: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, *cases: str, tokens: float = 1) -> None:
        for case in cases:
            self.tasks.append(asyncio.create_task(self._ask(case, tokens)))
            await settle()

    async def _ask(self, case: str, tokens: float) -> None:
        await self.pacer.admit(case, tokens)
        self.passed.append(case)

    async def look(self) -> str:
        """Who has passed, once the pacer has looked at the clock again."""
        self.pacer.close_for(0)
        self.pacer._admit_due()
        await settle()
        return "".join(self.passed)

    def close(self) -> None:
        for task in self.tasks:
            task.cancel()


def test_cases_take_turns_and_no_minute_holds_more() -> None:
    async def run() -> None:
        clock = Clock()
        queue = Queue(pacer(clock, requests_per_minute=2))
        await queue.ask("a", "a", "a", "a", "a", "b", "c", "b")
        assert await queue.look() == "aa"
        clock.now += MINUTE - 0.01
        assert await queue.look() == "aa"
        clock.now += 0.02
        assert await queue.look() == "aaab"
        clock.now += MINUTE
        assert await queue.look() == "aaabca"
        clock.now += MINUTE
        assert await queue.look() == "aaabcaba"

    asyncio.run(run())


def test_a_cancelled_request_takes_no_turn() -> None:
    async def run() -> None:
        clock = Clock()
        queue = Queue(pacer(clock, requests_per_minute=1))
        await queue.ask("a", "b", "c")
        assert await queue.look() == "a"
        queue.tasks[1].cancel()
        await settle()
        clock.now += MINUTE
        assert await queue.look() == "ac"

    asyncio.run(run())


def test_the_token_limit_uses_corrected_counts() -> None:
    async def run() -> None:
        clock = Clock()
        served = pacer(clock, tokens_per_minute=100)
        first = await served.admit("a", 60)
        queue = Queue(served)
        await queue.ask("b", tokens=60)
        assert await queue.look() == ""
        served.correct(first, 30)  # it used less than was thought
        assert await queue.look() == "b"
        await queue.ask("c", tokens=1000)  # more than any minute holds: it has one for itself
        clock.now += MINUTE - 1
        assert await queue.look() == "b"
        clock.now += 2
        assert await queue.look() == "bc"
        queue.close()

    asyncio.run(run())


def test_a_limit_below_one_request_per_minute() -> None:
    async def run() -> None:
        clock = Clock()
        queue = Queue(pacer(clock, requests_per_minute=0.5))
        await queue.ask("a", "b")
        clock.now += MINUTE + 1
        assert await queue.look() == "a"
        clock.now += MINUTE
        assert await queue.look() == "ab"

    asyncio.run(run())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30)), max_size=40),
    st.floats(0.3, 5),
)
def test_no_window_holds_more_than_the_limit(asked: list[tuple[str, float]], limit: float) -> None:
    async def run() -> None:
        clock = Clock()
        queue = Queue(pacer(clock, requests_per_minute=limit))
        times: list[float] = []
        for case, pause in asked:
            clock.now += pause
            await queue.ask(case)
            await queue.look()
            times += [clock.now] * (len(queue.passed) - len(times))
        while len(queue.passed) < len(asked):
            clock.now += 7
            await queue.look()
            times += [clock.now] * (len(queue.passed) - len(times))
        most, span = max(1, int(limit)), max(MINUTE, MINUTE / limit)
        for early, late in zip(times, times[most:], strict=False):
            assert late - early >= span - 1e-6

    asyncio.run(run())


def test_a_requested_pause_holds_for_all_cases() -> None:
    async def run() -> None:
        clock = Clock()
        served = pacer(clock)
        queue = Queue(served)
        served.close_for(10)
        await queue.ask("a", "b")
        assert await queue.look() == ""
        clock.now += 10
        assert await queue.look() == "ab"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "body", "transient"),
    [
        (429, {}, True),
        (429, {"error": {"code": "insufficient_quota", "type": "insufficient_quota"}}, False),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, True),
        (503, {}, True),
        (503, {"error": {"message": "The engine is currently overloaded.", "type": "server_error"}}, True),
        (500, {"type": "error", "error": {"type": "overloaded_error"}}, True),
        (500, {"error": {"message": "429"}}, False),
        (502, {"error": {"code": 429, "message": "upstream"}}, True),
        (400, {"error": {"code": 400}}, False),
        (401, {"error": "429"}, False),
        (200, {"type": "error", "code": "rate_limit_exceeded"}, True),
        (500, [], False),
        (500, None, False),
    ],
)
def test_which_errors_are_transient(status: int, body: Any, transient: bool) -> None:
    assert is_transient(status, json_or_none(json.dumps(body).encode())) is transient


def test_invalid_json_is_none() -> None:
    assert json_or_none(b"<html>") is None
    assert json_or_none(b"[" * 100_000) is None


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-4"}, 0),
        ({"retry-after": "99999"}, 99999),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_delay(headers, lambda: NOW) == seconds


@given(st.integers(1, 60))
def test_delays_double_up_to_a_bound_with_jitter(tries: int) -> None:
    least = min(2.0 ** (tries - 1), LONGEST_DELAY)
    assert least <= retry_delay({}, tries) <= least * (1 + JITTER)
    assert 8 <= retry_delay({"retry-after": "8"}, tries) <= 8 * (1 + JITTER)
    longest = retry_delay({"retry-after": "99999"}, tries)
    assert LONGEST_RETRY_AFTER <= longest <= LONGEST_RETRY_AFTER * (1 + JITTER)
    for soon in ({"retry-after": "0"}, {"retry-after": "-4"}, {"retry-after-ms": "10"}):
        assert retry_delay(soon, tries) >= least
