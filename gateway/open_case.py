"""One open case: its counts, its request log, what is kept of its exchanges. It knows neither sockets nor models.

The counts are sums of the same records that become the lines of the log, so the two always agree.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.case_models import Api, CaseCounts, CaseSpec
from gateway.cassette import Recorder
from gateway.exchange import Exchange
from gateway.first_request import first_request
from gateway.redact import mask_bytes
from gateway.tally import Tally


class Case:
    """A case's state in the gateway."""

    def __init__(self, spec: CaseSpec, secrets: Iterable[str] = ()) -> None:
        """Set up the case and create its log's folder (raises OSError).

        Args:
            spec: what is to be served.
            secrets: what no file of the case may hold.
        """
        self.spec = spec
        self._secrets = tuple(secrets)
        self.recorder = Recorder(spec.cassette, self._secrets) if spec.cassette else None
        self._tally = Tally()
        self._in_progress: dict[int, Exchange] = {}
        self._number = 0
        self._has_asked = False
        self._bodies = 0
        self._waiting = 0
        self._waited = 0.0
        self._waiting_since = 0.0
        self.replay_diff: str | None = None
        """Where the case first left its recording."""
        spec.request_log.parent.mkdir(parents=True, exist_ok=True)
        _end_torn_line(spec.request_log)
        if spec.request_bodies:
            spec.request_bodies.mkdir(parents=True, exist_ok=True)
            self._bodies = len(list(spec.request_bodies.iterdir()))

    def begin(self, method: str, path: str) -> Exchange:
        """A request has arrived."""
        exchange = Exchange(method, path, number=self._number)
        self._number += 1
        self._in_progress[exchange.number] = exchange
        return exchange

    @property
    def removed_tools(self) -> set[str]:
        """The names of all tools that the claw offered and that did not reach the model."""
        return self._tally.removed.union(*(one.removed for one in self._in_progress.values() if one.counted))

    def keep_body(self, body: object) -> None:
        """Write a request's JSON to the case's folder of bodies, if it has one."""
        if self.spec.request_bodies:
            text = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
            (self.spec.request_bodies / f"{self._bodies:05d}.json").write_bytes(mask_bytes(text, self._secrets))
            self._bodies += 1

    def note_first(self, exchange: Exchange, api: Api, body: Mapping[str, Any]) -> None:
        """Describe a request that is about to go out, if it is the first one (raises OSError)."""
        if not self._has_asked:
            self._has_asked = True
            exchange.first_request = first_request(api, body, store=self.spec.request_texts, secrets=self._secrets)

    @contextmanager
    def waiting(self, exchange: Exchange) -> Iterator[None]:
        """A request is held back; while several are at the same time, the case's waiting time counts once."""
        began = time.monotonic()
        if not self._waiting:
            self._waiting_since = began
        self._waiting += 1
        try:
            yield
        finally:
            ended = time.monotonic()
            exchange.waited += ended - began
            self._waiting -= 1
            if not self._waiting:
                self._waited += ended - self._waiting_since

    def finish(self, exchange: Exchange) -> None:
        """A request is over; without an ending of its own, its client left (raises OSError)."""
        exchange.ending = exchange.ending or "client_gone"
        del self._in_progress[exchange.number]
        self._tally.add(exchange)
        _append(self.spec.request_log, exchange.log_line())

    def counts(self) -> CaseCounts:
        """What was counted so far; a request that hangs already counts as hung."""
        waiting = time.monotonic() - self._waiting_since if self._waiting else 0.0
        counts = self._tally.counts(self._in_progress.values(), self._waited + waiting)
        return counts.model_copy(update={"replay_diff": self.replay_diff})


def _append(log: Path, line: str) -> None:
    """Append a line in one write, so that a kill leaves no half line."""
    data = line.encode() + b"\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.write(file, data) != len(data):
            raise OSError(f"{log}: only a part of a line could be written")
    finally:
        os.close(file)


def _end_torn_line(log: Path) -> None:
    """End a line that a crash of the machine cut short, so that nothing is appended to it."""
    if log.exists() and log.stat().st_size:
        with log.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
