"""Prices from the installed genai-prices package, as plain rates; nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal

import genai_prices
from genai_prices import data_snapshot, types

from gateway.metering.prices import Period, PriceTable, Rates
from gateway.providers import ProviderConfigError

_KEYS = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok", "output_mtok")
_OTHER_MEDIA = re.compile("audio|image|video|document|searches")
"""Price keys that do not apply to a text request without tools that run at the provider."""


def find(name: str, base_url: str, price_provider: str | None, model: str, today: date) -> PriceTable | None:
    """The table of a model, from the package; see PriceTable.find.

    The provider is found by its id or by its URL, never guessed from the model's name, as another provider's price
    would be wrong. The result is also None for a model that the package lists without a price (which may be a free
    one), or with prices for more than the classes of tokens that are counted here, such as a price per request.
    """
    snapshot = data_snapshot.get_snapshot()
    seller = _seller(snapshot.providers, base_url, price_provider)
    info = seller.find_model(model, all_providers=snapshot.providers) if seller else None
    if seller is None or info is None:
        return None
    conditions = info.prices if isinstance(info.prices, list) else [types.ConditionalPrice(prices=info.prices)]
    periods = [_period(condition) for condition in conditions]
    known = [period for period in periods if period]
    if not known or len(known) < len(periods):
        return None
    dated = _newest_change(snapshot.providers, today)
    return PriceTable(
        provider=name,
        model=model,
        source=f"genai-prices {genai_prices.__version__} {dated}",
        dated=dated,
        priced_as=f"{seller.id}/{info.id}",
        periods=tuple(known),
    )


def _seller(
    providers: Iterable[types.Provider], base_url: str, price_provider: str | None
) -> types.Provider | None:
    if price_provider is None:
        return next((provider for provider in providers if re.match(provider.api_pattern, base_url)), None)
    for provider in providers:
        if provider.id == price_provider:
            return provider
    raise ProviderConfigError(f"genai-prices {genai_prices.__version__} knows no provider {price_provider!r}")


def _period(condition: types.ConditionalPrice) -> Period | None:
    prices = {key: price for key, price in vars(condition.prices).items() if price is not None}
    others = [key for key in prices if key not in _KEYS and not _OTHER_MEDIA.search(key)]
    if others or "input_mtok" not in prices or "output_mtok" not in prices:
        return None
    starts = {0} | {tier.start for price in prices.values() for tier in getattr(price, "tiers", ())}
    tiers = tuple(_rates([prices.get(key) for key in _KEYS], start) for start in sorted(starts))
    start, daily = None, None
    match condition.constraint:
        case types.StartDateConstraint():
            start = condition.constraint.start_date
        case types.TimeOfDateConstraint():
            daily = (_utc(condition.constraint.start_time), _utc(condition.constraint.end_time))
    return Period(start=start, daily=daily, tiers=tiers)


def _rates(prices: list[Decimal | types.TieredPrices | None], start: int) -> Rates:
    """The rates of one tier. A class without a price of its own has that of the class that contains it.

    Cache writes for an hour are an exception: they are dearer wherever writes have a price of their own.
    """
    given, read, write, hour, output = (_at(price, start) for price in prices)
    read = given if read is None else read
    write = given if write is None else write
    hour = write if hour is None and write == given else hour
    return Rates(above=start, input=given, cache_read=read, cache_write=write, cache_write_1h=hour, output=output)


def _at(price: Decimal | types.TieredPrices | None, start: int) -> Decimal | None:
    if not isinstance(price, types.TieredPrices):
        return price
    return next((tier.price for tier in reversed(price.tiers) if tier.start <= start), price.base)


def _utc(clock: time) -> time:
    if clock.tzinfo is None:
        return clock
    return datetime.combine(date(1970, 1, 1), clock).astimezone(UTC).time()


def _newest_change(providers: Iterable[types.Provider], today: date) -> date | None:
    """The date of the newest price change in the package's data, which have no date of their own."""
    prices = (
        model.prices for provider in providers for model in provider.models if isinstance(model.prices, list)
    )
    constraints = (condition.constraint for conditions in prices for condition in conditions)
    starts = (limit.start_date for limit in constraints if isinstance(limit, types.StartDateConstraint))
    return max((start for start in starts if start <= today), default=None)
