"""Tokens and costs of cases and runs, for metadata and reports. Unknown figures are None, never 0."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

from adapters.base import TokenUsage
from gateway.case_models import CaseCounts
from gateway.tally import counts_of
from records.models import Cost, ModelUse, Record, Tokens
from records.run_folder import RunDirectory
from records.spent import Spent

TOLERANCE = 0.02
"""The fraction by which a claw's own count may differ from the gateway's before it is reported."""


def spent(run: RunDirectory) -> Decimal:
    """See `Spent.total`."""
    return Spent(run).total()


class UsageRecord(Record):
    """`usage.json`: the usage of a case, as counted by the gateway and as reported by the claw."""

    gateway: CaseCounts | None
    claw: TokenUsage | None
    mismatches: list[str]


def model_use(counts: CaseCounts | None, told: TokenUsage | None, *, has_price: bool) -> ModelUse:
    """The use of the model, as a case's record contains it.

    Args:
        counts: the gateway's; None without a gateway, when only the claw knows.
        told: what the claw reports.
        has_price: whether using the model can cost money.
    """
    if counts is None:
        tokens = Tokens(**asdict(told)) if told is not None else Tokens()
        unknown = dict.fromkeys(("requests", "turns", "unknown_usage", "waited", "retries"))
        return ModelUse.model_validate({**unknown, "tokens": tokens, "cost": Cost(unpriced=None)})
    row = counts.model_dump(include=set(ModelUse.model_fields))
    return ModelUse.model_validate(row if has_price else {**row, "cost": None})


def use_in(log: Path, has_price: bool) -> ModelUse:
    """The totals of a request log; a missing log counts as an empty one (raises OSError)."""
    return model_use(counts_of(log) if log.exists() else CaseCounts(), None, has_price=has_price)


def mismatches(told: TokenUsage | None, counts: CaseCounts | None) -> list[str]:
    """The token classes in which a claw's own count differs too much from the gateway's."""
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
