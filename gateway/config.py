"""The configuration of the gateway's process: one line of JSON on its standard input.

Only that line holds the provider's key: no argument, environment variable, file or log of the process does.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Self

from pydantic import Field, SecretStr, model_validator

from gateway.case_models import Strict
from gateway.metering.prices import PriceTable
from gateway.providers import Provider


class Upstream(Strict):
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
        """What no reply and no file may hold."""
        return (self.key.get_secret_value(),) if self.key else ()


class GatewayConfig(Strict):
    """The configuration of one process; without an upstream it serves only scripted and replayed models."""

    upstream: Upstream | None = None
    spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for the run."""
    case_spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for each case."""
    spent_before: Decimal = Field(default=Decimal(0), ge=0)
    """US dollars that earlier cases of the same run cost."""
    prices: PriceTable | None = None
    """Of the run's model; None: unknown."""

    @model_validator(mode="after")
    def _can_keep_its_limits(self) -> Self:
        limited = self.spend_limit is not None or self.case_spend_limit is not None
        enough = self.prices is not None and self.prices.is_enough_for_limits
        if limited and self.upstream and not enough:
            raise ValueError(
                f"the price of {self.upstream.full_name} is unknown, so no spend limit can be enforced"
            )
        return self

    def line(self) -> bytes:
        """The line for the process's standard input; it holds the key."""
        fields = self.model_dump(mode="json")
        if self.upstream and self.upstream.key:
            fields["upstream"]["key"] = self.upstream.key.get_secret_value()
        return json.dumps(fields).encode() + b"\n"
