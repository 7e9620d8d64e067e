"""Sums over a case's requests, and over a run's cases. What is over is kept as sums alone: memory stays flat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from decimal import Decimal
from typing import TYPE_CHECKING

from gateway.metering.usage import UNKNOWN
from gateway.models import ENDINGS, CaseCounts, Cost, Ending, RunTotals, TokenCounts

if TYPE_CHECKING:
    from gateway.case import Exchange


class TokenSum:
    """Adds up token counts of which some may be unknown: the sum of what is known, None where nothing was."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._unknown: set[str] = set()

    def add(self, counts: TokenCounts) -> None:
        """Add one reply's, or one case's."""
        for name in TokenCounts.model_fields:
            value = getattr(counts, name)
            if value is None:
                self._unknown.add(name)
            else:
                self._known[name] = self._known.get(name, 0) + value

    def total(self) -> TokenCounts:
        """The sum; with nothing added it is that of no tokens at all."""
        if not self._known and not self._unknown:
            return TokenCounts(reasoning=0)
        nothing_known: dict[str, int | None] = dict.fromkeys(self._unknown)
        return TokenCounts(**(nothing_known | self._known))


class CostSum:
    """Adds up costs, each of which may be unknown."""

    def __init__(self) -> None:
        self._priced: Decimal | None = None
        self._told: Decimal | None = None
        self._held: Decimal | None = None
        self._unpriced = 0

    def add(self, cost: Cost) -> None:
        """Add one reply's, or one case's."""
        self._priced = _plus(self._priced, cost.priced)
        self._told = _plus(self._told, cost.told)
        self._held = _plus(self._held, cost.held)
        self._unpriced += cost.unpriced

    def total(self) -> Cost:
        """The sum of what is known."""
        return Cost(priced=self._priced, told=self._told, unpriced=self._unpriced, held=self._held)


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return other if one is None else one if other is None else one + other


class Tally:
    """What a case's requests add up to."""

    def __init__(self) -> None:
        self._requests = self._turns = self._unknown_usage = self._retries = 0
        self._upstream_seconds = 0.0
        self._tokens, self._cost = TokenSum(), CostSum()
        self._endings: Counter[Ending] = Counter()
        self._stop_reasons: Counter[str] = Counter()
        self._last: tuple[int, Ending, str] | None = None
        self._last_told: tuple[int, Ending, str] | None = None
        self._passed: set[str] = set()
        self.removed: set[str] = set()
        """The names of tools that were offered and did not reach the model."""
        self._models: set[str] = set()

    def add(self, exchange: Exchange) -> None:
        """Add a request, whose state is final or taken as it is at this moment."""
        if not exchange.counted:
            return
        self._requests += 1
        self._retries += max(0, exchange.tries - 1)
        self._passed.update(exchange.tools)
        self.removed.update(tool for tool in exchange.offered if tool not in exchange.tools)
        if exchange.model:
            self._models.add(exchange.model)
        if exchange.ending:
            self._add_ending((exchange.number, exchange.ending, exchange.error or ""))
        if exchange.replied:
            self._add_reply(exchange)

    def _add_ending(self, ended: tuple[int, Ending, str]) -> None:
        self._endings[ended[1]] += 1
        self._last = max(self._last or ended, ended)
        # what was refused here says nothing of the provider, and must not hide what it did before
        if ended[1] != "refused":
            self._last_told = max(self._last_told or ended, ended)

    def _add_reply(self, exchange: Exchange) -> None:
        self._turns += exchange.ending in ("ok", "empty")
        self._upstream_seconds += exchange.upstream_seconds or 0.0
        self._cost.add(exchange.cost)
        if exchange.finish_reason:
            self._stop_reasons[exchange.finish_reason] += 1
        self._tokens.add(exchange.usage or UNKNOWN)
        self._unknown_usage += exchange.usage is None

    def counts(self, under_way: Iterable[Exchange], waited: float) -> CaseCounts:
        """The sums, with the requests that are under way as they stand.

        Args:
            under_way: requests that were begun and not added yet.
            waited: seconds in which any of the case's requests was held back.
        """
        now = deepcopy(self)
        for exchange in under_way:
            now.add(exchange)
        return now._counts(waited)

    def _counts(self, waited: float) -> CaseCounts:
        last = self._last_told or self._last
        return CaseCounts(
            requests=self._requests,
            turns=self._turns,
            tokens=self._tokens.total(),
            endings={ending: self._endings[ending] for ending in ENDINGS},
            last_ending=last[1] if last else None,
            last_error=last[2] if last else "",
            tool_surface=sorted(self._passed),
            removed_tools=sorted(self.removed),
            models=sorted(self._models),
            unknown_usage=self._unknown_usage,
            cost=self._cost.total(),
            stop_reasons=dict(sorted(self._stop_reasons.items())),
            waited=round(waited, 3),
            retries=self._retries,
            upstream_seconds=round(self._upstream_seconds, 3),
        )


class RunTally:
    """What a run's cases add up to."""

    def __init__(self) -> None:
        self._cases = self._requests = self._turns = self._unknown_usage = self._retries = 0
        self._waited = 0.0
        self._tokens, self._cost = TokenSum(), CostSum()

    def add(self, counts: CaseCounts) -> None:
        """Add a case."""
        self._cases += 1
        self._requests += counts.requests
        self._turns += counts.turns
        self._unknown_usage += counts.unknown_usage
        self._retries += counts.retries
        self._waited += counts.waited
        self._tokens.add(counts.tokens)
        self._cost.add(counts.cost)

    def totals(self, under_way: Iterable[CaseCounts], spent: Decimal, *, budget_reached: bool) -> RunTotals:
        """The sums, with the cases that are open as they stand."""
        now = deepcopy(self)
        for counts in under_way:
            now.add(counts)
        return RunTotals(
            cases=now._cases,
            requests=now._requests,
            turns=now._turns,
            tokens=now._tokens.total(),
            unknown_usage=now._unknown_usage,
            cost=now._cost.total(),
            waited=round(now._waited, 3),
            retries=now._retries,
            spent=spent,
            budget_reached=budget_reached,
        )
