"""Spending, against the limits of the run and of each case. At a limit no new request is sent.

A request is sent as long as the limit is not reached, so replies in progress at that moment may exceed it by what
they cost themselves. Where a provider reports its own price and the table gives another, the higher one counts
against the limit. A reply without usage has no price; it counts with an estimate from its size, or limits would
not hold. What was held is in the request log, so a resumed run starts from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from gateway.case_models import TokenCounts
from gateway.metering.prices import PriceTable

BYTES_PER_TOKEN = 3
"""The estimate for a request or reply without usage: few bytes, as the estimate must not be too low."""


class Spending:
    """One run's money."""

    def __init__(
        self,
        prices: PriceTable | None,
        *,
        run_limit: Decimal | None = None,
        case_limit: Decimal | None = None,
        before: Decimal = Decimal(0),
    ) -> None:
        """Start counting.

        Args:
            prices: of the run's model.
            run_limit: US dollars for the run; None: no limit.
            case_limit: US dollars for each case; None: no limit.
            before: US dollars that earlier cases of the run cost.
        """
        self._prices = prices
        self._run_limit = run_limit
        self._case_limit = case_limit
        self._cases: defaultdict[str, Decimal] = defaultdict(Decimal)
        self.spent = before

    @property
    def cost_limit_reached(self) -> bool:
        """Whether no further request of the run is sent."""
        return self._run_refusal() is not None

    def refusal(self, case_id: str) -> str | None:
        """Why a request of this case may not be sent; None if it may."""
        spent = self._cases[case_id]
        if self._case_limit is not None and spent >= self._case_limit:
            return f"the case has spent {_dollars(spent)} of its limit of {_dollars(self._case_limit)}"
        return self._run_refusal()

    def _run_refusal(self) -> str | None:
        if self._run_limit is not None and self.spent >= self._run_limit:
            return f"the run has spent {_dollars(self.spent)} of its limit of {_dollars(self._run_limit)}"
        return None

    def price(self, usage: TokenCounts | None, when: datetime) -> Decimal | None:
        """What a reply cost by the table; None where that is not known."""
        return self._prices.price(usage, when) if self._prices and usage else None

    def add(
        self,
        case_id: str,
        *,
        known: Sequence[Decimal],
        usage: TokenCounts | None,
        size: tuple[int, int],
        when: datetime,
    ) -> Decimal | None:
        """A reply has come, complete or in part.

        Args:
            case_id: whose reply it is.
            known: what it cost in US dollars, by the table and by the provider, where each is known.
            usage: what it reported.
            size: bytes of the request and of the reply.
            when: the request was made.

        Returns:
            US dollars that it counts against the limits; None where not even an estimate is possible.
        """
        held = max(known) if known else self._estimate(usage, size, when)
        self.spent += held or 0
        self._cases[case_id] += held or 0
        return held

    def _estimate(self, usage: TokenCounts | None, size: tuple[int, int], when: datetime) -> Decimal | None:
        asked, said = (bytes_ // BYTES_PER_TOKEN for bytes_ in size)
        if usage and usage.input is not None:
            asked = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
        if usage and usage.output is not None:
            said = usage.output
        return self.price(TokenCounts(input=asked, output=said), when)

    def forget(self, case_id: str) -> None:
        """The case is closed; a new one of the same name begins at 0."""
        self._cases.pop(case_id, None)


def _dollars(amount: Decimal) -> str:
    return f"${amount:.4f}"
