"""One open case: its model, what is counted for it, its request log. It knows nothing of sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gateway.models import ENDINGS, CaseCounts, CaseSpec, Ending, TokenCounts
from gateway.scripted import ScriptedModel
from gateway.tokens import PromptCache, Usage


@dataclass
class Exchange:
    """One request and what became of it. Headers are not kept: they may hold a key."""

    method: str
    path: str
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    stream: bool | None = None
    model: str | None = None
    offered: tuple[str, ...] = ()
    """The names of the tools in the claw's request."""
    tools: tuple[str, ...] = ()
    """Those that reached the model."""
    removed_calls: tuple[str, ...] = ()
    """The names of the removed tools that the reply called, as the model spelt them."""
    status: int | None = None
    ending: Ending | None = None
    """None while it is not known."""
    usage: Usage | None = None
    """Set for a complete reply."""
    finish_reason: str | None = None

    @property
    def counted(self) -> bool:
        """Whether it asks something of the model; clients may look around with GET as they like."""
        return self.method == "POST"

    def log_line(self) -> str:
        """The request as one line of JSON."""
        return json.dumps(
            {
                "time": self.arrived.isoformat(timespec="milliseconds"),
                "method": self.method,
                "path": self.path,
                "model": self.model,
                "stream": self.stream,
                "offered": list(self.offered),
                "tools": list(self.tools),
                "removed_calls": list(self.removed_calls),
                "status": self.status,
                "ending": self.ending,
                "finish_reason": self.finish_reason,
                "tokens": _token_counts([self.usage]).model_dump() if self.usage else None,
                "latency": round(time.monotonic() - self.started, 4),
            }
        )


class Case:
    """A case's state in the gateway."""

    def __init__(self, spec: CaseSpec) -> None:
        """Set up the case (raises ValueError for an unknown model)."""
        self.model_name = spec.model
        self.model = ScriptedModel.of(spec)
        self.allowed_tools = spec.allowed_tools
        self.cache = PromptCache()
        self._log: Path = spec.request_log
        self._exchanges: list[Exchange] = []
        self._bodies = spec.request_bodies
        spec.request_log.parent.mkdir(parents=True, exist_ok=True)
        if self._bodies:
            self._bodies.mkdir(parents=True, exist_ok=True)

    def begin(self, method: str, path: str) -> Exchange:
        """A request has arrived."""
        exchange = Exchange(method, path)
        self._exchanges.append(exchange)
        return exchange

    @property
    def failed(self) -> int:
        """How many requests so far failed by the provider."""
        return sum(exchange.status == 500 for exchange in self._exchanges)

    @property
    def removed_tools(self) -> set[str]:
        """The names of all tools that the claw offered and that did not reach the model."""
        requests = [exchange for exchange in self._exchanges if exchange.counted]
        return {tool for request in requests for tool in request.offered if tool not in request.tools}

    def keep_body(self, body: object) -> None:
        """Keep a request's JSON where the case's owner wants it."""
        if self._bodies:
            number = len(list(self._bodies.iterdir()))
            text = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
            (self._bodies / f"{number:05d}.json").write_bytes(text)

    def finish(self, exchange: Exchange) -> None:
        """A request is over: one that came to no ending of its own was left by its client."""
        exchange.ending = exchange.ending or "client_gone"
        with self._log.open("a", encoding="utf-8") as log:
            log.write(exchange.log_line() + "\n")

    def counts(self) -> CaseCounts:
        """What was counted so far; a request that hangs already counts as hung."""
        counted = [exchange for exchange in self._exchanges if exchange.counted]
        endings = [exchange.ending for exchange in counted if exchange.ending]
        # what was refused here says nothing of the provider, and must not hide what it did before
        told = [ending for ending in endings if ending != "refused"] or endings
        usages = [exchange.usage for exchange in counted if exchange.usage]
        return CaseCounts(
            requests=len(counted),
            turns=len(usages),
            tokens=_token_counts(usages),
            endings={ending: endings.count(ending) for ending in ENDINGS},
            last_ending=told[-1] if told else None,
            tool_surface=sorted({tool for exchange in counted for tool in exchange.tools}),
            removed_tools=sorted(self.removed_tools),
            models=sorted({exchange.model for exchange in counted if exchange.model}),
        )


def _token_counts(usages: list[Usage]) -> TokenCounts:
    def total(part: Callable[[Usage], int]) -> int:
        return sum(part(usage) for usage in usages)

    return TokenCounts(
        input=total(lambda usage: usage.prompt - usage.cached),
        cache_read=total(lambda usage: usage.cached),
        cache_write=0,
        output=total(lambda usage: usage.completion),
    )
