"""Sums over a case's requests. Finished requests are kept as sums only, so memory stays flat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import TypeVar

from gateway.case_models import ENDINGS, CaseCounts, Cost, Ending, FirstRequest, TokenCounts
from gateway.exchange import Exchange, logged
from gateway.metering.reply_usage import UNKNOWN

Sum = TypeVar("Sum", TokenCounts, Cost)


def plus(one: Sum | None, other: Sum) -> Sum:
    """The sum, field by field: of what is known, and None where neither is known."""
    if one is None:
        return other
    sums = {}
    for name in type(other).model_fields:
        known = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        sums[name] = sum(known) if known else None
    return type(other).model_validate(sums)


class Tally:
    """The sums of one case."""

    def __init__(self) -> None:
        self._requests = self._turns = self._unknown_usage = self._retries = 0
        self._upstream_seconds = 0.0
        self._tokens: TokenCounts | None = None
        self._cost: Cost | None = None
        self._endings: Counter[Ending] = Counter()
        self._stop_reasons: Counter[str] = Counter()
        self._last: tuple[int, Ending, str] | None = None
        self._last_not_refused: tuple[int, Ending, str] | None = None
        self._passed: set[str] = set()
        self.removed: set[str] = set()
        """The names of tools that were offered and did not reach the model."""
        self._models: set[str] = set()
        self._served_models: set[str] = set()
        self._first_request: FirstRequest | None = None

    def add(self, exchange: Exchange) -> None:
        """Add a request, finished or as it is at this moment."""
        if not exchange.counted:
            return
        self._requests += 1
        self._retries += max(0, exchange.tries - 1)
        self._passed.update(exchange.tools)
        self.removed |= exchange.removed
        if exchange.model:
            self._models.add(exchange.model)
        if exchange.served_model:
            self._served_models.add(exchange.served_model)
        self._first_request = self._first_request or exchange.first_request
        if exchange.ending:
            self._endings[exchange.ending] += 1
            ended = (exchange.number, exchange.ending, exchange.error or "")
            self._last = max(self._last or ended, ended)
            # a request refused here says nothing about the provider, and must not hide what it did before
            if exchange.ending != "refused":
                self._last_not_refused = max(self._last_not_refused or ended, ended)
        if exchange.replied:
            self._turns += exchange.ending in ("ok", "empty")
            self._upstream_seconds += exchange.upstream_seconds or 0.0
            self._tokens = plus(self._tokens, exchange.tokens or UNKNOWN)
            self._cost = plus(self._cost, exchange.cost or Cost(unpriced=1))
            told = exchange.tokens or UNKNOWN
            self._unknown_usage += told.input is None or told.output is None
            if exchange.finish_reason:
                self._stop_reasons[exchange.finish_reason] += 1

    def counts(self, in_progress: Iterable[Exchange], waited: float) -> CaseCounts:
        """The sums, including the requests in progress as they are now.

        Args:
            in_progress: requests that have begun and were not added yet.
            waited: seconds in which any of the case's requests was held back.
        """
        now = deepcopy(self)
        for exchange in in_progress:
            now.add(exchange)
        return now._counts(waited)

    def _counts(self, waited: float) -> CaseCounts:
        last = self._last_not_refused or self._last
        return CaseCounts(
            requests=self._requests,
            turns=self._turns,
            tokens=self._tokens or CaseCounts().tokens,
            endings={ending: self._endings[ending] for ending in ENDINGS},
            last_ending=last[1] if last else None,
            last_error=last[2] if last else "",
            tool_surface=sorted(self._passed),
            removed_tools=sorted(self.removed),
            models=sorted(self._models),
            served_models=sorted(self._served_models),
            first_request=self._first_request,
            unknown_usage=self._unknown_usage,
            cost=self._cost or Cost(),
            stop_reasons=dict(sorted(self._stop_reasons.items())),
            waited=round(waited, 3),
            retries=self._retries,
            upstream_seconds=round(self._upstream_seconds, 3),
        )


def counts_of(log: Path) -> CaseCounts:
    """What a case's request log adds up to, for a case whose gateway is gone (raises OSError).

    Waiting times of requests that were held back at the same time are added up here.
    """
    tally, waited = Tally(), 0.0
    for exchange in logged(log):
        tally.add(exchange)
        waited += exchange.waited
    return tally.counts((), waited)
