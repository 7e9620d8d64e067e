"""What tokens cost: one table for the one model of a run, found before the run and used for each reply.

A table is made of plain rates, so that it can go to the gateway's process and into the manifest unchanged: a cost
can be recalculated without this package. Its source is, in order of precedence, the provider's own `prices`
(providers.yaml), the dated override file (prices.yaml), or the installed genai-prices package, which never fetches
newer data here. A model that none of them knows has no table, and its cost is unknown.

Prices are those of the standard service: a reply of another service tier, or with fees for tools that run at the
provider (web search), has no known price (`reply_usage.surcharges`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, ValidationError

from gateway.case_models import Strict, TokenCounts
from gateway.providers import Provider, ProviderConfigError

Dollars = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
"""US dollars per million tokens."""

MILLION = 1_000_000


class Rates(Strict):
    """US dollars per million tokens of each class; None is unknown."""

    above: int = Field(default=0, ge=0)
    """They apply to a request whose prompt, cached or not, has more tokens than this, and to all its tokens."""
    input: Dollars | None
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    """For tokens that are kept for an hour, where the provider reports them separately."""
    output: Dollars | None


class Period(Strict):
    """When some rates apply, in UTC."""

    start: date | None = None
    """The first day; None: always."""
    daily: tuple[time, time] | None = None
    """From the first time of the day until before the second, which may be past midnight; None: all day."""
    tiers: tuple[Rates, ...] = Field(min_length=1)
    """By ascending `above`."""

    def holds(self, when: datetime) -> bool:
        """Whether a request at this time has these rates."""
        if self.start and when.date() < self.start:
            return False
        if not self.daily:
            return True
        first, end = self.daily
        now = when.time()
        return first <= now < end if first <= end else now >= first or now < end

    def rates(self, prompt: int) -> Rates:
        """The rates for a prompt of so many tokens."""
        return next((tier for tier in reversed(self.tiers) if prompt > tier.above), self.tiers[0])


class PriceTable(Strict):
    """The prices of one model of one provider."""

    provider: str
    model: str
    source: str
    """`provider file`, `override <date>`, or `genai-prices <version> <date>`."""
    dated: date | None = None
    """The day of the prices: an override's own; for genai-prices, that of the newest price change in its data; None
    for a provider's own."""
    priced_as: str | None = None
    """What genai-prices calls the model: `<provider>/<model>`."""
    periods: tuple[Period, ...] = Field(min_length=1)
    """The last one that applies counts; the first one, if none does."""

    @classmethod
    def find(
        cls, provider: Provider, model: str, overrides: Path, *, today: date | None = None
    ) -> PriceTable | None:
        """The prices of a model, as known today; None: they are unknown.

        Args:
            provider: whose model it is.
            model: its name, as requests have it.
            overrides: the dated override file; it may be missing.
            today: used in place of today's date; later entries of the file do not count.

        Raises:
            ProviderConfigError: the file is wrong, or `price_provider` is unknown.
        """
        today = today or datetime.now(UTC).date()
        if own := provider.prices.get(model):
            periods = (Period(tiers=(Rates(**own.model_dump()),)),)
            return cls(provider=provider.name, model=model, source="provider file", periods=periods)
        if entry := _override(overrides, provider.name, model, today):
            return cls(
                provider=provider.name,
                model=model,
                source=f"override {entry.dated}",
                dated=entry.dated,
                periods=(Period(tiers=entry.tiers()),),
            )
        # Loading its data takes a second or two, and the gateway's own process does not need it.
        from gateway.metering import catalogue  # noqa: PLC0415

        return catalogue.find(provider.name, provider.base_url, provider.price_provider, model, today)

    @property
    def is_enough_for_limits(self) -> bool:
        """Whether any reply can count against a limit, at least by an estimate: input and output have a price."""
        return all(None not in (rates.input, rates.output) for period in self.periods for rates in period.tiers)

    def price(self, usage: TokenCounts, when: datetime) -> Decimal | None:
        """What one reply cost, in US dollars; None: unknown.

        It is unknown if the count of input or output is, if a class with tokens has no rate, or if the provider
        does not report cached tokens although they have a price of their own. Unreported cache writes are part of
        `input` and have its price: providers that charge more for them report them.

        Args:
            usage: the reply's tokens.
            when: when the request was sent; UTC, if it names no zone.
        """
        if usage.input is None or usage.output is None:
            return None
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
        period = next((period for period in reversed(self.periods) if period.holds(when)), self.periods[0])
        read, write, hour = usage.cache_read or 0, usage.cache_write or 0, usage.cache_write_1h or 0
        rates = period.rates(usage.input + read + write)
        if usage.cache_read is None and rates.cache_read not in (None, rates.input):
            return None
        parts = (
            (usage.input, rates.input),
            (read, rates.cache_read),
            (write - hour, rates.cache_write),
            (hour, rates.cache_write_1h),
            (usage.output, rates.output),
        )
        total = Decimal(0)
        for tokens, rate in parts:
            if tokens and rate is None:
                return None
            total += tokens * (rate or 0)
        return total / MILLION

    def manifest(self) -> dict[str, Any]:
        """The table as JSON; dollars are strings, so that no digit is lost."""
        return self.model_dump(mode="json") | {"currency": "USD", "per_tokens": MILLION}


class _Override(Strict):
    """One entry of the override file."""

    provider: str
    model: str
    dated: date
    """The day on which the price was read on the provider's site."""
    source: str
    """Where it was read."""
    rates: tuple[Rates, ...] = Field(min_length=1)

    def tiers(self) -> tuple[Rates, ...]:
        return tuple(sorted(self.rates, key=lambda rates: rates.above))


class _Overrides(Strict):
    prices: tuple[_Override, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            told = yaml.safe_load(path.read_text(encoding="utf-8"))
            return cls.model_validate({} if told is None else told)
        except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
            raise ProviderConfigError(f"{path}: {error}") from error


def _override(path: Path, provider: str, model: str, today: date) -> _Override | None:
    """The newest entry for a model, not later than today."""
    if not path.exists():
        return None
    entries = [
        entry for entry in _Overrides.read(path).prices if (entry.provider, entry.model) == (provider, model)
    ]
    return max((entry for entry in entries if entry.dated <= today), key=lambda entry: entry.dated, default=None)
