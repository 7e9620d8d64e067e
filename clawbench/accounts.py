"""What a case and a run used and cost, as metadata and reports say it. What is unknown is None there, never 0."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from adapters.base import TokenUsage
from gateway.models import CaseCounts, TokenCounts
from gateway.spend import held_from
from records.run import RunDirectory

TOLERANCE = 0.02
"""By which part a claw's own account may differ from the gateway's before it is told."""


class Spent:
    """What a run has spent so far: its request logs are read once, and what has been added to them at each look.

    The request logs are the truth: the gateway appends a line as each request ends, and no step removes one.
    """

    def __init__(self, run: RunDirectory) -> None:
        """Nothing is read yet."""
        self._run = run
        self._known: dict[Path, tuple[int, Decimal]] = {}

    def total(self) -> Decimal:
        """US dollars that are held against the run's limit, for attempts that were thrown away as well.

        Raises:
            OSError: a log can't be read.
        """
        known = {}
        for log in self._run.request_logs():
            read, dollars = self._known.get(log, (0, Decimal(0)))
            try:
                known[log] = held_from(log, read, dollars)
            except FileNotFoundError:
                continue  # moved away at this moment: it is found in its new place at the next look
        self._known = known
        return sum((dollars for _, dollars in known.values()), Decimal(0))


def spent(run: RunDirectory) -> Decimal:
    """See `Spent.total`."""
    return Spent(run).total()


def facts_of(counts: CaseCounts | None, told: TokenUsage | None, *, has_price: bool) -> dict[str, Any]:
    """What a case's metadata says of its use of the model.

    Args:
        counts: by the gateway; None where there was none, and only the claw can tell.
        told: by the claw itself.
        has_price: whether what answered could cost anything.
    """
    if counts is None:
        unknown = TokenCounts(**dict.fromkeys(TokenCounts.model_fields))
        tokens = unknown.model_dump() | (asdict(told) if told is not None else {})
        cost = {"priced": None, "told": None, "unpriced": None, "held": None}
        return {"requests": None, "turns": None, "tokens": tokens, "cost": cost}
    return {
        "requests": counts.requests,
        "turns": counts.turns,
        "removed_tools": counts.removed_tools,
        "tokens": counts.tokens.model_dump(),
        "unknown_usage": counts.unknown_usage,
        "cost": counts.cost.model_dump(mode="json") if has_price else None,
        "stop_reasons": counts.stop_reasons,
        "waited": counts.waited,
        "retries": counts.retries,
    }


def mismatches(told: TokenUsage | None, counts: CaseCounts | None) -> list[str]:
    """Where a claw's own account and the gateway's are further apart than they may be, class by class."""
    if told is None or counts is None or counts.unknown_usage:
        return []
    counted = counts.tokens.model_dump()
    return [
        f"{name}: the claw says {value}, the gateway counted {counted[name]}"
        for name, value in asdict(told).items()
        if value is not None
        and counted[name] is not None
        and abs(value - counted[name]) > TOLERANCE * counted[name]
    ]


def use_lines(counts: CaseCounts) -> list[str]:
    """A case's use of the model in a few lines of text."""
    tokens = ", ".join(
        f"{'unknown' if value is None else f'{value:,}'} {name.replace('_', ' ')}"
        for name, value in counts.tokens.model_dump().items()
    )
    endings = ", ".join(f"{count} {ending}" for ending, count in counts.endings.items() if count)
    cost, lines = counts.cost, [f"requests: {counts.requests:,} ({endings or 'none'})", f"tokens: {tokens}"]
    if counts.unknown_usage:
        lines.append(f"replies that told no usage: {counts.unknown_usage:,}")
    by_table = "unknown" if cost.priced is None else f"${cost.priced:.4f}"
    more = f", without {cost.unpriced:,} replies whose price is not known" if cost.unpriced and cost.priced else ""
    lines.append(f"cost by the price table: {by_table}{more}")
    if cost.told is not None:
        lines.append(f"cost in the provider's own word: ${cost.told:.4f}")
    if counts.waited or counts.retries:
        lines.append(f"held back for {counts.waited:.0f} s; sent once more: {counts.retries:,}")
    return lines
