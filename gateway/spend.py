"""Spending, against the limits of the run and of each case. At a limit no new request is sent.

Before a request is sent, the most that it may cost is reserved: the prompt by its size, the output by the request's own
limit. A request for which too little is left waits until the replies in progress have been counted. If there are none,
it is sent, so a limit is exceeded by one request at most.

Where a provider reports its own price and the table gives another, the higher one counts against the limit. A reply
whose usage is unknown has no price; it counts with what was reserved for it, or limits would not hold. What was held
is in the request log, so a resumed run starts from it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from gateway.case_models import TokenCounts
from gateway.metering.prices import PriceTable

BYTES_PER_TOKEN = 3
"""The estimate for a request or reply without usage: few bytes, as the estimate must not be too low."""
OUTPUT_TOKENS = 32_768
"""The most tokens that a reply is taken to have if the request sets no limit."""
SURCHARGE = 6
"""The largest known factor of a surcharge: Anthropic's fast mode costs six times the list price."""


@dataclass(eq=False)
class Reservation:
    """What a request in progress may cost at most."""

    case_id: str
    prompt: int
    """Tokens, estimated from the request's size."""
    output: int
    """The most tokens that the reply may have."""
    dollars: Decimal


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
        self._reserved: set[Reservation] = set()
        self._waiting: set[asyncio.Future[None]] = set()

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

    async def reserve(
        self,
        case_id: str,
        request: Mapping[str, Any],
        size: int,
        when: datetime,
        while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Reservation | str:
        """Wait until a request may be sent, and reserve what it may cost.

        Args:
            case_id: whose request it is.
            request: its JSON.
            size: its bytes.
            when: the request was made.
            while_waiting: entered only if the request has to wait.

        Returns:
            the reservation, which `release` or `add` ends; or why the request may not be sent.
        """
        prompt, output = size // BYTES_PER_TOKEN, output_limit(request)
        made = Reservation(case_id, prompt, output, self._upper(prompt, output, when) or Decimal(0))
        while True:
            why = self.refusal(case_id)
            if why is not None:
                return why
            if self._has_room(made):
                self._reserved.add(made)
                return made
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(freed)
            try:
                with while_waiting():
                    await freed
            finally:
                self._waiting.discard(freed)

    def _has_room(self, asked: Reservation) -> bool:
        of_case = [one for one in self._reserved if one.case_id == asked.case_id]
        limits = (
            (self._run_limit, self.spent, self._reserved),
            (self._case_limit, self._cases[asked.case_id], of_case),
        )
        return all(
            limit is None or not others or spent + sum(one.dollars for one in others) + asked.dollars <= limit
            for limit, spent, others in limits
        )

    def release(self, reservation: Reservation) -> None:
        """End a reservation; others may fit now. Ending it twice does no harm."""
        self._reserved.discard(reservation)
        for freed in self._waiting:
            if not freed.done():
                freed.set_result(None)

    def price(self, usage: TokenCounts | None, when: datetime) -> Decimal | None:
        """What a reply cost by the table; None where that is not known."""
        return self._prices.price(usage, when) if self._prices and usage else None

    def add(
        self,
        reservation: Reservation,
        *,
        known: Sequence[Decimal],
        usage: TokenCounts | None,
        received: int,
        when: datetime,
        has_surcharge: bool = False,
    ) -> Decimal | None:
        """Count a reply, complete or in part, and end its reservation.

        Args:
            reservation: of the request.
            known: what it cost in US dollars, by the table and by the provider, where each is known.
            usage: what it reported.
            received: bytes of the reply.
            when: the request was made.
            has_surcharge: whether the reply costs more than the table says, by an unknown amount.

        Returns:
            US dollars that it counts against the limits; None where not even an estimate is possible.
        """
        held = max(known) if known else self._estimate(reservation, usage, received, when)
        if held is not None and has_surcharge and not known:
            held *= SURCHARGE
        self.spent += held or 0
        self._cases[reservation.case_id] += held or 0
        self.release(reservation)
        return held

    def _estimate(
        self, reservation: Reservation, usage: TokenCounts | None, received: int, when: datetime
    ) -> Decimal | None:
        asked, said = reservation.prompt, max(reservation.output, received // BYTES_PER_TOKEN)
        if usage and usage.input is not None:
            asked = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
        if usage and usage.output is not None:
            said = usage.output
        return self._upper(asked, said, when)

    def _upper(self, prompt: int, output: int, when: datetime) -> Decimal | None:
        """The most that so many tokens cost: as if the whole prompt were written to the dearest cache."""
        if self._prices is None:
            return None
        classes = ({"input": prompt}, {"cache_write": prompt}, {"cache_write": prompt, "cache_write_1h": prompt})
        nothing = {"input": 0, "cache_read": 0}
        found = (self._prices.price(TokenCounts(**{**nothing, **one}, output=output), when) for one in classes)
        return max((price for price in found if price is not None), default=None)

    def forget(self, case_id: str) -> None:
        """The case is closed; a new one of the same name begins at 0."""
        self._cases.pop(case_id, None)


def _dollars(amount: Decimal) -> str:
    return f"${amount:.4f}"


def output_limit(request: Mapping[str, Any]) -> int:
    """The most tokens that the replies to a request may have: its own limit, or `OUTPUT_TOKENS`, for each choice."""
    told = [request.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
    limits = [value for value in told if isinstance(value, int) and not isinstance(value, bool) and value > 0]
    choices = request.get("n")
    return (min(limits) if limits else OUTPUT_TOKENS) * (
        choices if isinstance(choices, int) and choices > 0 else 1
    )
