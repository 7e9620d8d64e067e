"""What each claw is configured with, and what it says that it used: all that needs no container."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters import user_config
from adapters.base import Adapter, BadOptionError, Task, TokenUsage
from adapters.generic import generic_config
from adapters.generic.generic_adapter import GenericAdapter
from adapters.hermes import hermes_config
from adapters.hermes.hermes_adapter import HermesAdapter
from adapters.nanobot import nanobot_config
from adapters.nanobot.nanobot_adapter import NanobotAdapter
from adapters.zeroclaw.zeroclaw_adapter import ZeroclawAdapter

TASK = Task("p", "/testbed", "http://127.0.0.1:1/v1", "some/model", 60.0, 17)


def test_nanobots_config_points_at_the_gateway_and_nowhere_else() -> None:
    config = nanobot_config.make_config(NanobotAdapter().config_file(), TASK, ["PATH"])
    assert config["agents"]["defaults"]["maxToolIterations"] == 17
    assert config["agents"]["defaults"]["model"] == "some/model"
    assert config["providers"] == {"custom": {"apiKey": "placeholder", "apiBase": TASK.base_url}}
    assert config["tools"]["exec"] == {
        "enable": True,
        "timeout": 60,
        "denyPatterns": [],
        "allowedEnvKeys": ["PATH"],
    }
    assert not any(config["tools"][tool]["enable"] for tool in ("web", "cliApps", "my"))


def test_hermes_config_points_at_the_gateway_and_nowhere_else() -> None:
    config = yaml.safe_load(hermes_config.make_config(HermesAdapter().config_file(), TASK, ["x"]))
    assert config["agent"]["max_turns"] == 17
    assert config["model"] == {"default": "some/model", "provider": "custom:gateway", "context_length": 200_000}
    assert [provider["base_url"] for provider in config["custom_providers"]] == [TASK.base_url]
    assert config["terminal"]["cwd"] == "/testbed"
    assert config["memory"] == {"memory_enabled": False, "user_profile_enabled": False}


def test_generics_config_points_at_the_gateway_and_nowhere_else() -> None:
    config = generic_config.render_config(GenericAdapter().config_file(), TASK)
    assert list(config) == ["native_oai_config", "oai_config"]
    for session in config.values():
        assert (session["apibase"], session["model"]) == (TASK.base_url, "some/model")


def test_llm_no_beyond_the_file_is_refused_with_what_is_there() -> None:
    file = GenericAdapter().config_file()
    generic_config.render_config(file, replace(TASK, llm_no=1))
    with pytest.raises(BadOptionError, match=r"--llm-no=2: .* 2 sessions, .*: native_oai_config, oai_config"):
        generic_config.render_config(file, replace(TASK, llm_no=2))


@pytest.mark.parametrize(
    ("claw", "name", "own"),
    [
        (NanobotAdapter(), "config.json", "config.local.json"),
        (HermesAdapter(), "config.yaml", "config.local.yaml"),
        (ZeroclawAdapter(), "config.toml", "config.local.toml"),
        (GenericAdapter(), "mykey.json", "mykey.local.json"),
        (GenericAdapter(), "mykey.json", "mykey.local.py"),
    ],
)
def test_a_users_own_config_is_preferred(
    claw: Adapter, name: str, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_config, "CONFIGS", tmp_path)
    (tmp_path / claw.name).mkdir()
    assert claw.config_file() == tmp_path / claw.name / name
    (tmp_path / claw.name / own).touch()
    assert claw.config_file() == tmp_path / claw.name / own


def of_nanobot(file: Path) -> Any:
    return nanobot_config.make_config(file, TASK, [])


def of_hermes(file: Path) -> Any:
    return hermes_config.make_config(file, TASK, [])


def of_generic(file: Path) -> Any:
    return generic_config.render_config(file, TASK)


@pytest.mark.parametrize(
    ("render", "suffix", "content", "said"),
    [
        (of_nanobot, "json", '{"providers": {"custom": {"apiKey": "sk-real"}}}', "providers"),
        (of_nanobot, "json", '{"tools": {"web": {"enable": true}}}', "tools.web"),
        (of_nanobot, "json", '{"tools": {"exec": {"enable": false}}}', "tools.exec.enable"),
        (of_nanobot, "json", '{"agents": {"defaults": {"model": "x"}}}', "agents.defaults.model"),
        (of_nanobot, "json", "{", "JSON"),
        (of_nanobot, "json", "[]", "the file"),
        (of_hermes, "yaml", "custom_providers: [{api_key: sk-real}]", "custom_providers"),
        (of_hermes, "yaml", "model: {default: x}", "model.default"),
        (of_hermes, "yaml", "agent: {max_turns: 3}", "agent.max_turns"),
        (of_hermes, "yaml", "memory: {memory_enabled: true}", "memory"),
        (of_hermes, "yaml", "a: [sk-real", "not valid YAML"),
        (of_hermes, "yaml", "- x", "the file"),
        (of_generic, "json", '{"oai_config": {"apikey": "sk-real"}}', "oai_config.apikey"),
        (of_generic, "json", '{"native_claude_config": {}}', "native_claude_config"),
        (of_generic, "json", "{}", "the file"),
    ],
)
def test_a_config_that_sets_what_the_suite_fixes_is_refused_without_showing_values(
    tmp_path: Path, render: Callable[[Path], Any], suffix: str, content: str, said: str
) -> None:
    file = tmp_path / f"own.{suffix}"
    file.write_text(content)
    with pytest.raises(BadOptionError, match=said) as caught:
        render(file)
    assert "sk-real" not in str(caught.value)


def nanobot_session(folder: Path, first: object) -> Path:
    (folder / "s").mkdir()
    (folder / "s" / "a.jsonl").write_text(json.dumps(first) + "\n{}\n")
    return folder


def test_nanobots_usage_comes_in_classes_that_do_not_overlap(tmp_path: Path) -> None:
    used = {"input_tokens": 100, "output_tokens": 9, "cache_read_tokens": 60, "cache_write_tokens": 10}
    folder = nanobot_session(tmp_path, {"_type": "metadata", "metadata": {"_last_usage": used}})
    assert NanobotAdapter().usage(folder, b"") == TokenUsage(30, 60, 10, 9)


def test_a_cache_that_was_not_reported_is_unknown(tmp_path: Path) -> None:
    used = {"input_tokens": 100, "output_tokens": 9, "cache_read_tokens": None}
    folder = nanobot_session(tmp_path, {"metadata": {"_last_usage": used}})
    assert NanobotAdapter().usage(folder, b"") == TokenUsage(100, None, None, 9)


@pytest.mark.parametrize(
    "first", [{}, [], "x", {"metadata": 3}, {"metadata": {"_last_usage": {"input_tokens": "9"}}}]
)
def test_a_nanobot_session_that_lies_in_form_gives_no_usage(tmp_path: Path, first: object) -> None:
    assert NanobotAdapter().usage(nanobot_session(tmp_path, first), b"") is None


def hermes_session(folder: Path, rows: list[tuple[object, ...]]) -> Path:
    """A database as a killed hermes leaves it: what it wrote is in the write-ahead log alone."""
    live = folder / "live"
    live.mkdir()
    with closing(sqlite3.connect(live / "state.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        columns = "input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, api_call_count"
        connection.execute(f"CREATE TABLE sessions ({columns})")
        connection.executemany("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
        shutil.copytree(live, folder / "session")
    shutil.rmtree(live)
    return folder / "session"


def test_hermes_usage_is_the_sum_of_its_sessions_with_the_write_ahead_log(tmp_path: Path) -> None:
    session = hermes_session(tmp_path, [(30, 60, 10, 9, 2), (1, 2, 3, 4, 1)])
    assert HermesAdapter().usage(session, b"") == TokenUsage(31, 62, 13, 13)
    (session / "state.db-wal").unlink()
    assert HermesAdapter().usage(session, b"") is None


@pytest.mark.parametrize("rows", [[], [(0, 0, 0, 0, 0)], [("x", 1, 1, 1, 1)], [(b"\0", None, 1, 1, 1)]])
def test_a_hermes_session_without_calls_or_with_other_things_gives_no_usage(
    tmp_path: Path, rows: list[tuple[object, ...]]
) -> None:
    assert HermesAdapter().usage(hermes_session(tmp_path, rows), b"") is None


def test_a_hermes_session_that_is_no_database_gives_no_usage(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database at all" * 100)
    assert HermesAdapter().usage(tmp_path, b"") is None


def test_generics_usage_is_the_sum_of_its_output() -> None:
    said = b"x\n[Cache] input=100 cached=40\nComplete.\n[Cache] input=200 cached=100\n"
    assert GenericAdapter().usage(Path(), said) == TokenUsage(160, 140, None, None)
    said += b"[Output] tokens=7 stop_reason=stop\n"
    assert GenericAdapter().usage(Path(), said) == TokenUsage(160, 140, None, 7)
    assert GenericAdapter().usage(Path(), b"") is None


@pytest.mark.parametrize("claw", [NanobotAdapter(), HermesAdapter(), GenericAdapter()], ids=lambda claw: claw.name)
def test_no_session_gives_no_usage(claw: Adapter, tmp_path: Path) -> None:
    assert claw.usage(tmp_path, b"") is None
