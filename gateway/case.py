"""One open case: what is counted for it, and its request log. It knows neither sockets nor models.

The counts are made from the very records that become the log's lines, so that the lines of a case add up to its
counts. A line is appended whole, in one write: a kill leaves no line in two.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from gateway.cassette import Recorder
from gateway.models import Api, CaseCounts, CaseSpec, Cost, Ending, TokenCounts
from gateway.redact import mask_bytes
from gateway.tally import Tally


@dataclass
class Exchange:
    """One request and what became of it. Headers and bodies are not kept: they may hold a key."""

    method: str
    path: str
    number: int
    """Which of the case's requests it is; they are counted from 0 as they arrive."""
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    api: Api | None = None
    stream: bool | None = None
    model: str | None = None
    """As the claw asked for it."""
    served_model: str | None = None
    """As the reply names it."""
    offered: tuple[str, ...] = ()
    """The names of the tools in the claw's request."""
    tools: tuple[str, ...] = ()
    """Those that reached the model."""
    removed_calls: tuple[str, ...] = ()
    """The names of the removed tools that the reply called, as the model spelt them."""
    status: int | None = None
    ending: Ending | None = None
    """None while it is not known."""
    replied: bool = False
    """Whether the model replied, be it in part: what the provider charges for."""
    usage: TokenCounts | None = None
    """None where no reply came, or it told none."""
    priced: Decimal | None = None
    told: Decimal | None = None
    """US dollars, by the price table and by the provider itself."""
    held: Decimal | None = None
    """US dollars that are held against spend limits."""
    finish_reason: str | None = None
    """Why the model stopped, in the provider's own words."""
    tries: int = 0
    """How often it was sent to the provider."""
    waited: float = 0.0
    """Seconds for which it was held back here."""
    first_byte: float | None = None
    """Seconds from the last try to the first byte of its reply's body."""
    upstream_seconds: float | None = None
    """Seconds from the last try to the end of its reply."""
    error: str | None = None
    """What went wrong, without any key."""

    @property
    def counted(self) -> bool:
        """Whether it asks something of the model; clients may look around with GET as they like."""
        return self.method == "POST"

    @property
    def cost(self) -> Cost:
        """What its reply cost; to be asked only where there is one."""
        return Cost(priced=self.priced, told=self.told, unpriced=int(self.priced is None), held=self.held)

    @classmethod
    def of_line(cls, line: str, number: int = 0) -> Exchange:
        """A request that is over, as far as counts need it (raises ValueError for what is no line of a log).

        Args:
            line: of a request log.
            number: of the request.
        """
        row = json.loads(line)
        if not isinstance(row, dict) or not {"method", "path", "ending", "replied"} <= set(row):
            raise ValueError("not a line of a request log")
        same = (
            "method",
            "path",
            "model",
            "ending",
            "replied",
            "finish_reason",
            "error",
            "tries",
            "waited",
            "upstream_seconds",
        )
        cost = Cost.model_validate(row.get("cost") or {})
        return cls(
            number=number,
            **{name: row[name] for name in same if name in row},
            offered=tuple(row.get("offered", ())),
            tools=tuple(row.get("tools", ())),
            usage=TokenCounts.model_validate(row["tokens"]) if row.get("tokens") else None,
            priced=cost.priced,
            told=cost.told,
            held=cost.held,
        )

    def log_line(self) -> str:
        """The request as one line of JSON."""
        return json.dumps(
            {
                "time": self.arrived.isoformat(timespec="milliseconds"),
                "method": self.method,
                "path": self.path,
                "api": self.api,
                "model": self.model,
                "served_model": self.served_model,
                "stream": self.stream,
                "offered": list(self.offered),
                "tools": list(self.tools),
                "removed_calls": list(self.removed_calls),
                "status": self.status,
                "ending": self.ending,
                "finish_reason": self.finish_reason,
                "replied": self.replied,
                "tokens": self.usage.model_dump() if self.usage else None,
                "cost": self.cost.model_dump(mode="json") if self.replied else None,
                "tries": self.tries,
                "waited": round(self.waited, 4),
                "first_byte": _rounded(self.first_byte),
                "upstream_seconds": _rounded(self.upstream_seconds),
                "latency": _rounded(time.monotonic() - self.started),
                "error": self.error,
            }
        )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


class Case:
    """A case's state in the gateway."""

    def __init__(self, spec: CaseSpec, secrets: Iterable[str] = ()) -> None:
        """Set up the case; its log's folder is made (raises OSError).

        Args:
            spec: what is to be served.
            secrets: what must be in no file that the case leaves.
        """
        self.spec = spec
        self._secrets = tuple(secrets)
        self._recorder = Recorder(spec.cassette, self._secrets) if spec.cassette else None
        self._tally = Tally()
        self._under_way: dict[int, Exchange] = {}
        self._number = 0
        self._bodies = 0
        self._waiting = 0
        self._waited = 0.0
        self._waiting_since = 0.0
        self.departure: str | None = None
        """Where the case first left its recording."""
        spec.request_log.parent.mkdir(parents=True, exist_ok=True)
        _end_torn_line(spec.request_log)
        if spec.request_bodies:
            spec.request_bodies.mkdir(parents=True, exist_ok=True)
            self._bodies = len(list(spec.request_bodies.iterdir()))

    def begin(self, method: str, path: str) -> Exchange:
        """A request has arrived."""
        exchange = Exchange(method, path, self._number)
        self._number += 1
        self._under_way[exchange.number] = exchange
        return exchange

    @property
    def removed_tools(self) -> set[str]:
        """The names of all tools that the claw offered and that did not reach the model."""
        requests = [exchange for exchange in self._under_way.values() if exchange.counted]
        return self._tally.removed | {tool for one in requests for tool in one.offered if tool not in one.tools}

    def keep_body(self, body: object) -> None:
        """Keep a request's JSON where the case's owner wants it."""
        if self.spec.request_bodies:
            text = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
            (self.spec.request_bodies / f"{self._bodies:05d}.json").write_bytes(mask_bytes(text, self._secrets))
            self._bodies += 1

    @property
    def records(self) -> bool:
        """Whether its exchanges are kept whole."""
        return self._recorder is not None

    def record(
        self,
        exchange: Exchange,
        request: bytes,
        *,
        headers: Mapping[str, str],
        chunks: Sequence[bytes],
        complete: bool = True,
    ) -> None:
        """Keep an exchange whole, if exchanges are kept (raises OSError).

        Args:
            exchange: the request, whose reply is over.
            request: its JSON, as the claw sent it.
            headers: of the reply.
            chunks: of the reply's body, decoded, as the claw got them.
            complete: whether the reply came to its end.
        """
        if self._recorder and exchange.api and exchange.status is not None:
            self._recorder.record(
                exchange.api,
                exchange.path,
                request,
                status=exchange.status,
                headers=headers,
                chunks=chunks,
                complete=complete,
            )

    @contextmanager
    def waiting(self, exchange: Exchange) -> Iterator[None]:
        """A request is held back; where several are at once, the case waits once."""
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
        """A request is over: one that came to no ending of its own was left by its client (raises OSError)."""
        exchange.ending = exchange.ending or "client_gone"
        del self._under_way[exchange.number]
        self._tally.add(exchange)
        _append(self.spec.request_log, exchange.log_line())

    def counts(self) -> CaseCounts:
        """What was counted so far; a request that hangs already counts as hung."""
        waiting = time.monotonic() - self._waiting_since if self._waiting else 0.0
        counts = self._tally.counts(self._under_way.values(), self._waited + waiting)
        return counts.model_copy(update={"departure": self.departure})


def logged(log: Path) -> Iterator[Exchange]:
    """The requests of a log; a line that a kill of the machine tore is left out (raises OSError)."""
    for number, line in enumerate(log.read_text("utf-8", errors="replace").splitlines()):
        with suppress(ValueError):
            yield Exchange.of_line(line, number)


def counts_of(log: Path) -> CaseCounts:
    """What a case's log adds up to, for one whose gateway is gone (raises OSError).

    The times for which requests were held back at once are added up here.
    """
    tally, waited = Tally(), 0.0
    for exchange in logged(log):
        tally.add(exchange)
        waited += exchange.waited
    return tally.counts((), waited)


def _append(log: Path, line: str) -> None:
    data = line.encode() + b"\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.write(file, data) != len(data):
            raise OSError(f"{log} took only a part of a line")
    finally:
        os.close(file)


def _end_torn_line(log: Path) -> None:
    """What is appended must not be glued to a line that a kill of the machine cut short."""
    if log.exists() and log.stat().st_size:
        with log.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
