"""Price tables: where they come from, and what a reply costs by them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
import pytest
from genai_prices import data_snapshot, types
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.case_models import TokenCounts
from gateway.metering.prices import PriceTable
from gateway.providers import Provider, ProviderConfigError

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TODAY = NOON.date()


def provider(base_url: str = "http://127.0.0.1:8000/v1", **more: Any) -> Provider:
    return Provider.model_validate({"name": "p", "base_url": base_url} | more)


def declared(**prices: Any) -> PriceTable:
    table = PriceTable.find(provider(prices={"m": prices}), "m", Path("none"), today=TODAY)
    assert table
    return table


def tokens(
    given: int | None = 0, read: int | None = 0, write: int | None = 0, output: int | None = 0, **more: Any
) -> TokenCounts:
    return TokenCounts(input=given, cache_read=read, cache_write=write, output=output, **more)


def test_every_class_has_its_own_price() -> None:
    table = declared(input="3", cache_read="0.3", cache_write="3.75", output="15")
    usage = tokens(1_000, 20_000, 4_000, 500)
    assert table.price(usage, NOON) == Decimal("0.003") + Decimal("0.006") + Decimal("0.015") + Decimal("0.0075")
    assert table.price(tokens(), NOON) == 0


def test_unknown_tokens_have_no_price() -> None:
    table = declared(input="3", cache_read="0.3", output="15")
    assert table.price(tokens(1, 2, 0, 3), NOON) is not None
    for usage in (tokens(None), tokens(output=None), tokens(write=1), tokens(5, None)):
        assert table.price(usage, NOON) is None
    # what was written is told nowhere, so it has the price of the rest of the input
    assert table.price(tokens(1_000_000, 0, None), NOON) == 3


@pytest.mark.parametrize("read", ["3", None])
def test_an_unreported_cache_is_priced_as_input_if_its_rate_is_the_same(read: str | None) -> None:
    assert declared(input="3", cache_read=read, output="15").price(tokens(1_000_000, None, None), NOON) == 3


def test_tokens_kept_for_an_hour_cost_more() -> None:
    table = PriceTable.find(
        provider("https://api.anthropic.com/v1"), "claude-sonnet-4-5", Path("none"), today=TODAY
    )
    assert table
    short = table.price(tokens(write=10_000), NOON)
    hour = table.price(tokens(write=10_000, cache_write_1h=10_000), NOON)
    mixed = table.price(tokens(write=10_000, cache_write_1h=4_000), NOON)
    assert (short, hour, mixed) == (Decimal("0.0375"), Decimal("0.06"), Decimal("0.0465"))


OVERRIDES = """
prices:
  - provider: p
    model: m
    dated: 2026-11-02
    source: https://provider.example/prices
    rates:
      - {above: 32000, input: 2, cache_read: 0.2, output: 10}
      - {input: 1.1, cache_read: 0.1, output: 5}
  - {provider: p, model: m, dated: 2026-10-01, source: x, rates: [{input: 7, output: 7}]}
  - {provider: p, model: m, dated: 2027-01-01, source: x, rates: [{input: 8, output: 8}]}
  - {provider: q, model: m, dated: 2026-11-05, source: x, rates: [{input: 9, output: 9}]}
"""


def test_the_newest_override_up_to_today_applies(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(OVERRIDES)
    table = PriceTable.find(provider(), "m", path, today=TODAY)
    assert table
    assert (table.source, table.dated) == ("override 2026-11-02", date(2026, 11, 2))
    assert table.price(tokens(20_000, 12_000, None, 0), NOON) == Decimal("0.0232")
    # one token more, and all of them cost more
    assert table.price(tokens(20_001, 12_000, None, 0), NOON) == Decimal("0.042402")
    older = PriceTable.find(provider(), "m", path, today=date(2026, 11, 1))
    assert older
    assert older.source == "override 2026-10-01"
    assert PriceTable.find(provider(), "m", path, today=date(2026, 9, 1)) is None
    assert PriceTable.find(provider(), "other", path, today=TODAY) is None


def test_the_order_is_own_prices_overrides_package(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    openai = {"base_url": "https://api.openai.com/v1"}

    def source(**more: Any) -> str:
        table = PriceTable.find(provider(**(openai | more)), "gpt-5", path, today=TODAY)
        assert table
        return table.source

    package = source()
    assert package.startswith(f"genai-prices {genai_prices.__version__} 2026-")
    path.write_text(
        "prices: [{provider: p, model: gpt-5, dated: 2026-11-02, source: x, rates: [{input: 1, output: 1}]}]"
    )
    assert source() == "override 2026-11-02"
    assert source(prices={"gpt-5": {"input": 1, "output": 1}}) == "provider file"
    assert source(prices={"gpt-4": {"input": 1, "output": 1}}) == "override 2026-11-02"
    path.write_text("")
    assert source() == package


@pytest.mark.parametrize(
    "text",
    [
        "prices: [",
        "price: []",
        "[]",
        "prices: [{provider: p, model: m, dated: 2026-11-02, source: x, rates: []}]",
        "prices: [{provider: p, model: m, source: x, rates: [{input: 1, output: 1}]}]",
        "prices: [{provider: p, model: m, dated: 2026-11-02, source: x, rates: [{input: -1, output: 1}]}]",
        "prices: [{provider: p, model: m, dated: 2026-11-02, source: x, rates: [{input: .nan, output: 1}]}]",
        "prices: [{provider: p, model: m, dated: 2026-11-02, source: x, rates: [{output: 1}]}]",
    ],
)
def test_a_wrong_override_file_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(ProviderConfigError, match=r"prices\.yaml"):
        PriceTable.find(provider(), "m", path, today=TODAY)


def test_the_shipped_override_file_and_its_example_can_be_read(tmp_path: Path) -> None:
    shipped = ROOT / "claw_configs" / "prices.yaml"
    assert PriceTable.find(provider(), "m", shipped, today=TODAY) is None
    lines = shipped.read_text().splitlines()
    example = lines[lines.index("# prices:") : -1]
    path = tmp_path / "prices.yaml"
    path.write_text("\n".join(line.removeprefix("# ") for line in example))
    named = provider(name="dashscope")
    assert PriceTable.find(named, "qwen3-coder-plus", path, today=date(2027, 1, 1))


@pytest.mark.parametrize("model", ["gpt-99-nothing", "qwen3-max", ""])
def test_an_unknown_model_has_no_table(model: str) -> None:
    assert PriceTable.find(provider("https://api.openai.com/v1"), model, Path("none"), today=TODAY) is None


def test_a_price_is_never_guessed_from_the_models_name() -> None:
    assert PriceTable.find(provider(), "gpt-5", Path("none"), today=TODAY) is None
    found = PriceTable.find(provider(price_provider="openai"), "gpt-5", Path("none"), today=TODAY)
    assert found
    assert found.priced_as == "openai/gpt-5"
    with pytest.raises(ProviderConfigError, match="opnai"):
        PriceTable.find(provider(price_provider="opnai"), "gpt-5", Path("none"), today=TODAY)


def test_a_model_listed_without_a_price_has_no_table() -> None:
    openrouter = provider("https://openrouter.ai/api/v1")
    assert PriceTable.find(openrouter, "qwen/qwen3-coder:free", Path("none"), today=TODAY) is None
    # each request costs, too, which tokens do not tell
    assert PriceTable.find(provider("https://api.perplexity.ai"), "sonar", Path("none"), today=TODAY) is None


MODELS = [
    (seller, info)
    for seller in data_snapshot.get_snapshot().providers
    for info in seller.models
    if seller.find_model(info.id, all_providers=None) is info
]
COUNTS = st.one_of(st.integers(0, 1000), st.integers(0, 1_200_000))


@settings(max_examples=400)
@given(
    listed=st.sampled_from(MODELS),
    counts=st.tuples(COUNTS, COUNTS, COUNTS, COUNTS),
    hour=st.integers(0, 1_200_000),
    minutes=st.integers(0, 3 * 366 * 24 * 60),
)
def test_the_package_calculates_the_same(
    listed: tuple[types.Provider, types.ModelInfo], counts: tuple[int, int, int, int], hour: int, minutes: int
) -> None:
    seller, info = listed
    when = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    table = PriceTable.find(provider(price_provider=seller.id), info.id, Path("none"), today=TODAY)
    if table is None:
        return
    rest, read, write, output = counts
    hour = min(hour, write)
    if any(rates.cache_write_1h is None for period in table.periods for rates in period.tiers):
        hour = 0  # the package prices these writes like short ones, which is too low
    ours = table.price(tokens(rest, read, write, output, cache_write_1h=hour), when)
    usage = genai_prices.Usage(
        input_tokens=rest + read + write,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=hour,
        output_tokens=output,
    )
    theirs = genai_prices.calc_price(usage, info.id, provider_id=seller.id, genai_request_timestamp=when)
    assert ours == theirs.total_price


@pytest.mark.parametrize("later", [{}, {"input_mtok": Decimal(1)}])
def test_a_model_without_a_price_at_some_time_has_no_table(later: dict[str, Decimal]) -> None:
    # the package's data have no such model now
    prices = types.ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(2))
    change = types.ConditionalPrice(types.StartDateConstraint(date(2026, 12, 1)), prices=types.ModelPrice(**later))
    model = types.ModelInfo("m", types.ClauseEquals("m"), prices=[types.ConditionalPrice(prices=prices), change])
    seller = types.Provider("s", "S", "https://s\\.example", models=[model])
    data_snapshot.set_custom_snapshot(data_snapshot.DataSnapshot([seller], from_auto_update=False))
    try:
        assert PriceTable.find(provider("https://s.example/v1"), "m", Path("none"), today=TODAY) is None
        model.prices = prices
        assert PriceTable.find(provider("https://s.example/v1"), "m", Path("none"), today=TODAY)
    finally:
        data_snapshot.set_custom_snapshot(None)


def test_most_models_of_the_package_have_a_table() -> None:
    known = [
        info.id
        for seller, info in MODELS
        if seller.id in ("openai", "anthropic", "deepseek", "openrouter")
        and PriceTable.find(provider(price_provider=seller.id), info.id, Path("none"), today=TODAY)
    ]
    assert len(known) > 700


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.5"])
def test_a_table_goes_through_json_and_into_the_manifest(model: str) -> None:
    table = PriceTable.find(provider("https://api.openai.com/v1"), model, Path("none"), today=TODAY)
    assert table
    assert PriceTable.model_validate_json(table.model_dump_json()) == table
    manifest = table.manifest()
    assert manifest["provider"] == "p"
    assert manifest["model"] == model
    assert manifest["source"].endswith(manifest["dated"])
    assert manifest["currency"] == "USD"
    first = manifest["periods"][0]["tiers"][0]
    assert Decimal(first["input"]) == table.periods[0].tiers[0].input


def test_times_are_converted_to_utc() -> None:
    deepseek = provider("https://api.deepseek.com/v1")
    table = PriceTable.find(deepseek, "deepseek-chat", Path("none"), today=TODAY)
    assert table
    usage = tokens(1_000_000)
    day, night = (table.price(usage, NOON.replace(hour=hour)) for hour in (12, 20))
    assert (day, night) == (Decimal("0.27"), Decimal("0.135"))
    edges = [NOON.replace(hour=hour, minute=minute) for hour, minute in ((0, 29), (0, 30), (16, 29), (16, 30))]
    assert [table.price(usage, edge) for edge in edges] == [night, day, day, night]
    assert table.price(usage, NOON.replace(tzinfo=None)) == day
    assert table.price(usage, datetime.fromisoformat("2026-11-21T04:00:00+08:00")) == night


def test_the_gateways_process_does_not_load_the_packages_data() -> None:
    code = "import sys, gateway.metering.prices, gateway.metering.reader; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
