"""What each claw's config says of the wire format and the window that a task names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from adapters.base import APIS, Task, apis_of
from adapters.generic import generic_config
from adapters.hermes import hermes_config
from adapters.nanobot import nanobot_config
from adapters.openclaw import openclaw_config
from adapters.registry import CLAWS, adapter
from adapters.zeroclaw import zeroclaw_config

TASK = Task("p", "/testbed", "http://127.0.0.1:1/v1", "some/model", 60.0, 17)


def of_openclaw(task: Task) -> dict[str, Any]:
    return openclaw_config.render_config(adapter("openclaw").config_file(), task)


def of_hermes(task: Task) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(hermes_config.make_config(adapter("hermes").config_file(), task, []))
    return config


def of_nanobot(task: Task) -> dict[str, Any]:
    return nanobot_config.make_config(adapter("nanobot").config_file(), task, [])


def of_zeroclaw(task: Task) -> dict[str, Any]:
    return zeroclaw_config.make_config(adapter("zeroclaw").config_file(), task, [])


def of_generic(task: Task) -> dict[str, Any]:
    return generic_config.render_config(adapter("generic").config_file(), task)


Render = Callable[[Task], dict[str, Any]]


def test_every_claw_of_the_suite_speaks_every_format() -> None:
    for name in CLAWS:
        assert set(apis_of(adapter(name))) == set(APIS)
        assert apis_of(adapter(name))[0] == "chat"


@pytest.mark.parametrize(
    ("render", "api", "said"),
    [
        (of_openclaw, "chat", {"api": "openai-completions"}),
        (of_openclaw, "responses", {"api": "openai-responses"}),
        (of_openclaw, "messages", {"api": "anthropic-messages"}),
        (of_hermes, "chat", {"api_mode": "chat_completions"}),
        (of_hermes, "responses", {"api_mode": "codex_responses"}),
        (of_hermes, "messages", {"api_mode": "anthropic_messages"}),
        (of_nanobot, "chat", {"provider": "custom"}),
        (of_nanobot, "responses", {"provider": "openai", "apiType": "responses"}),
        (of_nanobot, "messages", {"provider": "anthropic"}),
        (of_zeroclaw, "chat", {"model_provider": "custom.gateway", "wire_api": "chat_completions"}),
        (of_zeroclaw, "responses", {"model_provider": "custom.gateway", "wire_api": "responses"}),
        (of_zeroclaw, "messages", {"model_provider": "anthropic.gateway"}),
        (of_generic, "chat", {"api_mode": "chat_completions"}),
        (of_generic, "responses", {"api_mode": "responses"}),
    ],
)
def test_the_format_is_said_in_the_claws_own_words(render: Render, api: str, said: dict[str, str]) -> None:
    flat = pairs(render(replace(TASK, api=api)))
    assert {name: value for name, value in flat if name in said} == said


def test_generics_sessions_are_named_for_anthropics_format_and_keep_their_places() -> None:
    config = of_generic(replace(TASK, api="messages"))
    assert list(config) == ["native_claude_config", "claude_config"]
    assert all("api_mode" not in session for session in config.values())


@pytest.mark.parametrize("render", [of_openclaw, of_hermes, of_nanobot, of_zeroclaw, of_generic])
@pytest.mark.parametrize("api", APIS)
def test_whatever_the_format_the_gateway_is_asked_and_nobody_else(render: Render, api: str) -> None:
    flat = pairs(render(replace(TASK, api=api)))
    addresses = {value for _, value in flat if isinstance(value, str) and value.startswith("http")}
    without = {"http://127.0.0.1:1"} if render is of_zeroclaw and api == "messages" else {TASK.base_url}
    assert addresses == without
    keys = {value for name, value in flat if name.lower().replace("_", "") == "apikey"}
    assert keys == {"placeholder"}


@pytest.mark.parametrize(
    ("render", "names", "window"),
    [
        (of_openclaw, {"contextWindow"}, 64_000),
        (of_hermes, {"context_length"}, 64_000),
        # in bytes, three of which stand for a token
        (of_nanobot, {"contextWindowTokens"}, 192_000),
        (of_zeroclaw, {"max_context_tokens"}, 64_000),
        (of_generic, {"context_win"}, 64_000),
    ],
)
def test_the_window_that_the_provider_declares_is_used(render: Render, names: set[str], window: int) -> None:
    flat = pairs(render(replace(TASK, context_window=64_000)))
    assert {value for name, value in flat if name in names} == {window}
    assert {value for name, value in pairs(render(TASK)) if name in names} != {window}


def pairs(value: Any) -> list[tuple[str, Any]]:
    """Every key with its value, at any depth."""
    if isinstance(value, list):
        return [pair for inner in value for pair in pairs(inner)]
    if not isinstance(value, dict):
        return []
    return [pair for key, inner in value.items() for pair in ((key, inner), *pairs(inner))]
