"""What the gateway's process is told at its start, in one line of JSON on its standard input.

The provider's key is in that line and nowhere else: not in the process's arguments, environment, files or log.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from gateway.metering.prices import PriceTable
from gateway.providers import Provider


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Upstream(_Strict):
    """The provider and the one model of a run."""

    provider: Provider
    model: str = Field(min_length=1)
    """As the provider calls it."""
    key: SecretStr | None = None

    @property
    def full_name(self) -> str:
        """`<provider>/<model>`."""
        return f"{self.provider.name}/{self.model}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be found in no reply and no file."""
        return (self.key.get_secret_value(),) if self.key else ()


class GatewayConfig(_Strict):
    """One process's task; without an upstream it serves scripted and replayed models alone."""

    upstream: Upstream | None = None
    spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for the run."""
    case_spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for each case."""
    spent_before: Decimal = Field(default=Decimal(0), ge=0)
    """US dollars that earlier cases of the same run cost."""
    prices: PriceTable | None = None
    """Of the run's model; None: not known."""

    @model_validator(mode="after")
    def _can_keep_its_limits(self) -> Self:
        limited = self.spend_limit is not None or self.case_spend_limit is not None
        enough = self.prices is not None and self.prices.is_enough_for_limits
        if limited and self.upstream and not enough:
            raise ValueError(f"the price of {self.upstream.full_name} is not known, so no spend limit can be kept")
        return self

    def line(self) -> bytes:
        """The line for the process's standard input; it holds the key."""
        fields = self.model_dump(mode="json")
        if self.upstream and self.upstream.key:
            fields["upstream"]["key"] = self.upstream.key.get_secret_value()
        return json.dumps(fields).encode() + b"\n"
