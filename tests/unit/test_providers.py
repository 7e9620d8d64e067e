"""Providers as they are declared, their keys, and what the gateway's process is told."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from gateway import headers
from gateway.config import GatewayConfig, Upstream
from gateway.metering.prices import PriceTable
from gateway.providers import Prices, Provider, ProviderConfigError, load_providers, provider_of, read_key

SHIPPED = Path(__file__).parents[2] / "claw_configs" / "providers.yaml"
KEY = "sk-or-v1-0d9f4c7e21aa"


def declared(folder: Path, **providers: Any) -> Path:
    path = folder / "providers.yaml"
    path.write_text(yaml.safe_dump(providers))
    return path


def provider(**fields: Any) -> Provider:
    return Provider.model_validate({"name": "p", "base_url": "https://example.org/v1", **fields})


def test_the_shipped_providers_are_valid_and_hold_no_key() -> None:
    shipped = load_providers(SHIPPED)
    assert set(shipped) >= {"openrouter", "anthropic", "openai", "deepseek", "dashscope", "infini", "vllm"}
    for name, found in shipped.items():
        assert found.base_url.startswith("https://") or name == "vllm"
        assert (found.key_env is None) == (name == "vllm")
    assert shipped["anthropic"].auth == "x-api-key"


def test_a_users_own_file_replaces_single_providers(tmp_path: Path) -> None:
    path = declared(tmp_path, a={"base_url": "https://a/v1", "apis": ["messages"]}, b={"base_url": "https://b/v1"})
    (tmp_path / "providers.local.yaml").write_text(
        "a: {base_url: 'https://mine/v1/'}\nc: {base_url: 'http://c'}\n"
    )
    found = load_providers(path)
    assert {name: one.base_url for name, one in found.items()} == {
        "a": "https://mine/v1",
        "b": "https://b/v1",
        "c": "http://c",
    }
    assert found["a"].apis == ("chat",), "nothing of the replaced one is left"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"base_url": "ftp://a"}, "base_url"),
        ({"base_url": "https://user:pw@a/v1"}, "base_url"),
        ({"base_url": "https://a/v1?key=x"}, "base_url"),
        ({"base_url": "https://a:99999/v1"}, "base_url"),
        ({"transforms": ["include_usage", "magic"]}, "transforms: .*unknown transform 'magic'; known are include"),
        ({"api_key": KEY}, "api_key"),
        ({"key_env": "A", "key_file": "b"}, "key_env and key_file"),
        ({"headers": {"Authorization": f"Bearer {KEY}"}}, "key_env"),
        ({"headers": {"X": "a\r\nb"}}, "line"),
        ({"apis": []}, "apis"),
        ({"apis": ["completions"]}, "apis"),
        ({"rate_limit": {"requests_per_minute": 0}}, "requests_per_minute"),
        ({"context_window": {"default": 0}}, "context window"),
        ({"prices": {"m": {"input": -1}}}, "input"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_a_wrong_declaration_is_reported_without_any_key(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    path = declared(tmp_path, p={"base_url": "https://a/v1", **fields})
    with pytest.raises(ProviderConfigError, match=told) as error:
        load_providers(path)
    assert str(path) in str(error.value)
    assert KEY not in str(error.value)


@pytest.mark.parametrize("text", ["- a", "a: 7", "a: [", "\x00"])
def test_an_invalid_file_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "providers.yaml"
    path.write_text(text)
    with pytest.raises(ProviderConfigError, match=r"providers\.yaml"):
        load_providers(path)


def test_a_model_may_have_slashes() -> None:
    known = {"p": provider()}
    assert provider_of("p/vendor/model:free", known) == (known["p"], "vendor/model:free")
    for model in ("p", "p/", "q/m", "p/ m", "/m"):
        with pytest.raises(ProviderConfigError, match="p"):
            provider_of(model, known)


def test_the_window_of_a_model() -> None:
    assert provider().window_of("m") is None
    windows = provider(context_window={"default": 1000, "m": 2000})
    assert (windows.window_of("m"), windows.window_of("n")) == (2000, 1000)


@pytest.mark.parametrize(
    "key",
    ["", "  ", "your-key-here", "sk-your-key", "<key>", "${KEY}xxx", "sk-xxxxxxxx", "changeme", "a b", "\u00e9"],
)
def test_an_invalid_key_is_refused(tmp_path: Path, key: str) -> None:
    file = tmp_path / "key"
    file.write_text(key)
    for found, environment in ((provider(key_env="K"), {"K": key}), (provider(key_file=file), {})):
        with pytest.raises(ProviderConfigError, match="p needs its key in") as error:
            read_key(found, environment)
        assert not key.strip() or f" {key}" not in str(error.value)


def test_a_key_is_found_where_it_is_declared(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    for found in (provider(key_env="K"), provider(key_file=file)):
        key = read_key(found, {"K": KEY})
        assert key is not None
        assert key.get_secret_value() == KEY
        assert KEY not in repr(key)
    assert read_key(provider()) is None
    for found in (provider(key_env="K"), provider(key_file=tmp_path / "none")):
        with pytest.raises(ProviderConfigError, match="not there"):
            read_key(found, {})


def test_the_key_is_only_in_the_configuration_line() -> None:
    config = GatewayConfig(upstream=Upstream(provider=provider(), model="m", key=SecretStr(KEY)))
    assert KEY in config.line().decode()
    assert config.line().count(b"\n") == 1
    for form in (repr(config), str(config), config.model_dump_json(), str(config.model_dump())):
        assert KEY not in form
    again = GatewayConfig.model_validate_json(config.line())
    assert again == config


def test_a_limit_needs_a_price() -> None:
    upstream = Upstream(provider=provider(), model="m")
    for limits in ({"spend_limit": 1}, {"case_spend_limit": "0.5"}):
        with pytest.raises(ValidationError, match="price of p/m is unknown"):
            GatewayConfig.model_validate({"upstream": upstream, **limits})
    priced = provider(prices={"m": Prices(input=Decimal(1), output=Decimal(2))})
    prices = PriceTable.find(priced, "m", Path("none.yaml"))
    config = GatewayConfig(upstream=Upstream(provider=priced, model="m"), spend_limit=Decimal(1), prices=prices)
    assert GatewayConfig.model_validate_json(config.line()) == config
    with pytest.raises(ValidationError):
        GatewayConfig(spend_limit=Decimal(0))


NAMES = """Authorization x-api-key API-KEY Cookie Set-Cookie X-Forwarded-For Host Accept Via Content-Type
    OpenAI-Beta anthropic-beta User-Agent Proxy-Authorization Referer Origin"""
names = st.sampled_from(NAMES.split())


@given(st.dictionaries(names, st.just("placeholder")), st.sampled_from(["bearer", "x-api-key"]))
def test_only_listed_headers_go_to_the_provider(of_claw: dict[str, str], auth: str) -> None:
    sent = headers.for_provider(of_claw, auth=auth, key=KEY, declared={"X-Title": "t", "accept": "own"})
    lower = {name.lower(): value for name, value in sent.items()}
    listed = {"accept", "content-type", "openai-beta", "anthropic-beta", "user-agent"}
    given_too = {name.lower() for name in of_claw} & listed
    key = {"authorization": f"Bearer {KEY}"} if auth == "bearer" else {"x-api-key": KEY}
    always = {"accept-encoding": "identity", "x-title": "t", "accept": "own"}
    assert lower == dict.fromkeys(given_too, "placeholder") | always | key
    assert len(lower) == len(sent)


def test_only_listed_headers_go_to_the_claw() -> None:
    reply = [("Set-Cookie", "s"), ("Content-Type", "c"), ("x-ratelimit-limit-tokens", "1"), ("Server", "s")]
    reply += [("Retry-After", "1"), ("request-id", "r"), ("Connection", "x"), ("Location", "/"), ("X-Echo", "e")]
    assert set(headers.for_claw(reply)) == {
        "Content-Type",
        "x-ratelimit-limit-tokens",
        "Retry-After",
        "request-id",
    }


def test_the_line_is_one_json_object() -> None:
    assert json.loads(GatewayConfig().line())["upstream"] is None
