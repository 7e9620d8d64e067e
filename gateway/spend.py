"""What was spent, against the limits of the run and of each case. At a limit no new request is let through.

A request is let through while less than the limit is spent, so the replies that are under way at that moment may
go beyond it by what they cost themselves. Where a provider tells its own price and a table gives another, the
higher one is held against the limit. A reply that told no usage has no price; it is held against the limit by an
estimate from its size, for else a limit would not hold. The request log has what is held, so that a run that is
gone on with begins where it was.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from gateway.metering.prices import PriceTable
from gateway.models import TokenCounts

BYTES_PER_TOKEN = 3
"""Of a request or reply whose tokens nobody told: few, as the estimate must not be low."""


def held_from(log: Path, offset: int = 0, before: Decimal = Decimal(0)) -> tuple[int, Decimal]:
    """What a request log says is held against limits; a line that is not whole (yet) is left out.

    A run has such lines by the hundred thousand, so no more of each is looked at than this.

    Args:
        log: of a case.
        offset: bytes of it that were read before; a log that is shorter now is read from its beginning.
        before: US dollars in them.

    Returns:
        bytes that are read now, and US dollars in them.

    Raises:
        OSError: it can't be read.
    """
    with log.open("rb") as file:
        if file.seek(0, os.SEEK_END) < offset:
            offset, before = 0, Decimal(0)
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            offset += len(line)
            before += _held(line)
    return offset, before


def _held(line: bytes) -> Decimal:
    if b'"held": "' not in line:
        return Decimal(0)
    try:
        return Decimal(json.loads(line)["cost"]["held"])
    except (ValueError, ArithmeticError, LookupError, TypeError):
        return Decimal(0)


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
    def budget_reached(self) -> bool:
        """Whether no request of the run is let through any more."""
        return self._run_refusal() is not None

    def refusal(self, case_id: str) -> str | None:
        """Why a request of this case may not go to the provider; None where it may."""
        if self._case_limit is not None and self._cases[case_id] >= self._case_limit:
            return (
                f"the case has spent {_dollars(self._cases[case_id])} of its limit of {_dollars(self._case_limit)}"
            )
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
        priced: Decimal | None,
        told: Decimal | None,
        usage: TokenCounts | None,
        size: tuple[int, int],
        when: datetime,
    ) -> Decimal | None:
        """A reply has come, whole or in part.

        Args:
            case_id: whose reply it is.
            priced: what it cost by the table, in US dollars.
            told: what the provider says that it cost, in US dollars.
            usage: what it told.
            size: bytes of the request and of the reply.
            when: the request was made.

        Returns:
            what is held against the limits for it; None where there is no price for that, and so no limit either.
        """
        known = [cost for cost in (priced, told) if cost is not None]
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
        likely = TokenCounts(input=asked, output=said)
        return self.price(likely, when)

    def forget(self, case_id: str) -> None:
        """The case is closed; one of the same name begins anew."""
        self._cases.pop(case_id, None)


def _dollars(amount: Decimal) -> str:
    return f"${amount:.4f}"
