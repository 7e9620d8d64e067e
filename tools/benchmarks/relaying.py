"""What the gateway adds to a provider's stream, against a direct connection and a proxy that buffers.

Two loads, each over all routes in one run: one stream at a time, the routes taking turns; and many streams at once
for a minute per route, where a lost or crossed chunk ends the benchmark with an error.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import docker
from rich.table import Table

from gateway.case_models import CaseSpec
from gateway.client import Gateway, GatewayClient
from gateway.config import GatewayConfig, Upstream
from gateway.providers import Provider
from tools.benchmarks.streams import MODEL, Route, Timing, buffering_proxy, provider, timed_stream

ROUNDS = 40
CHUNKS = 25
PAUSE = 0.02
"""Seconds between two chunks of a stream that is alone."""
STREAMS = 64
STREAM_SECONDS = 60.0
STREAM_PAUSE = 0.1
"""Seconds between two chunks of one of many: with all of them it is as much as two cores can make and read."""
_PER_MESSAGE = 50
"""Chunks of one reply: a stream is many replies, one after the other, as a claw's turns are."""


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:  # noqa: ARG001 - it needs no container
    """Measure every route under both loads."""
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as folder, _routes(Path(folder)) as routes:
        say(f"one stream at a time: {ROUNDS} rounds over {len(routes)} routes")
        alone = asyncio.run(_in_turn(routes))
        many = []
        for route in routes:
            say(f"{STREAMS} streams at once for {STREAM_SECONDS:.0f} s: {route.name}")
            many.append(asyncio.run(_at_once(route)))
    table = Table("route", "chunks", *_HEADS, title="milliseconds; added: to the direct connection's", box=None)
    for name, load in (("1 stream", alone), (f"{STREAMS} streams", many)):
        for route, timings in zip(routes, load, strict=True):
            table.add_row(f"{route.name}, {name}", f"{_chunks(timings):,}", *_cells(timings, load[0]))
    return table


_HEADS = (
    "first byte: median",
    "p99",
    "added median",
    "added p99",
    "chunk: median",
    "p99",
    "added median",
    "added p99",
)


@contextmanager
def _routes(folder: Path) -> Iterator[list[Route]]:
    """The provider, reached directly, through the gateway, and through the proxy."""
    with provider() as address, buffering_proxy(address) as proxy:
        upstream = Upstream(provider=Provider(name="bench", base_url=f"{address}/v1"), model=MODEL)
        with Gateway.start(folder, GatewayConfig(upstream=upstream)) as gateway:
            spec = CaseSpec(case_id="bench", model=f"bench/{MODEL}", request_log=folder / "requests.jsonl")
            socket = str(GatewayClient(gateway.control).open_case(spec))
            yield [
                Route("direct", lambda: aiohttp.TCPConnector(limit=0), address),
                Route("gateway", lambda: aiohttp.UnixConnector(socket, limit=0), "http://gateway"),
                Route("buffering proxy", lambda: aiohttp.TCPConnector(limit=0), proxy),
            ]


async def _in_turn(routes: Sequence[Route]) -> list[list[Timing]]:
    """One stream after the other, the routes in turn; the first round warms up and does not count."""
    timings: list[list[Timing]] = [[] for _ in routes]
    sessions = [aiohttp.ClientSession(connector=route.connector()) for route in routes]
    try:
        for number in range(ROUNDS + 1):
            for session, route, kept in zip(sessions, routes, timings, strict=True):
                timing = await timed_stream(session, route.base, f"round {number}", CHUNKS, PAUSE)
                if number:
                    kept.append(timing)
    finally:
        for session in sessions:
            await session.close()
    return timings


async def _at_once(route: Route) -> list[Timing]:
    """Many streams side by side, begun one by one over a moment as claws are."""
    timings: list[Timing] = []
    end = time.monotonic() + STREAM_SECONDS

    async def stream(number: int) -> None:
        await asyncio.sleep(STREAM_PAUSE * number / STREAMS)
        turn = 0
        while time.monotonic() < end:
            name = f"stream {number} turn {turn}"
            timings.append(await timed_stream(session, route.base, name, _PER_MESSAGE, STREAM_PAUSE))
            turn += 1

    async with aiohttp.ClientSession(connector=route.connector()) as session, asyncio.TaskGroup() as tasks:
        for number in range(STREAMS):
            tasks.create_task(stream(number))
    return timings


def _chunks(timings: Sequence[Timing]) -> int:
    return sum(len(timing.lateness) for timing in timings)


def _cells(timings: Sequence[Timing], direct: Sequence[Timing]) -> list[str]:
    """Median and p99 of the first bytes and of the chunks, and what each is above the direct connection's."""
    cells = []
    for ours, base in zip(_samples(timings), _samples(direct), strict=True):
        told = [median(ours), _p99(ours)]
        added = [median(ours) - median(base), _p99(ours) - _p99(base)]
        cells += [f"{1000 * seconds:.2f}" for seconds in (*told, *added)]
    return cells


def _samples(timings: Sequence[Timing]) -> tuple[list[float], list[float]]:
    return [timing.first_byte for timing in timings], [late for timing in timings for late in timing.lateness]


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]
