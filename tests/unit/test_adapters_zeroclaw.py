# ruff: noqa: ARG002 - a shell takes what it need not look at
"""zeroclaw: how its binary is found, what it is configured with, which prompts it can't take, what it used."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import registry
from adapters.base import BadOptionError, CommandResult, NotInstalledError, Task, TokenUsage
from adapters.runtimes import MARKER
from adapters.zeroclaw import zeroclaw_adapter, zeroclaw_config
from adapters.zeroclaw.zeroclaw_adapter import PROMPT_LIMIT, ZeroclawAdapter

TASK = Task("p", "/testbed", "http://127.0.0.1:1/v1", "some/model", 60.0, 17)
CLAW = ZeroclawAdapter()


@dataclass
class Recorder:
    """A shell whose commands end as told and that keeps what it was handed."""

    exit_code: int | None = 0
    stdout: bytes = b"PATH=/bin\0HOME=/root\0odd\0A=x\ny=z\0"
    stderr: bytes = b""
    commands: list[list[str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        self.commands.append(list(command))
        return CommandResult(self.exit_code, self.stdout, self.stderr, 0.0)

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        self.files |= {f"{folder}/{name}": content for name, content in files.items()}

    def fetch(self, path: str, destination: Path) -> list[Path]:
        return []


def task(prompt: str) -> Task:
    return Task(prompt, TASK.workdir, TASK.base_url, TASK.model, TASK.timeout, TASK.max_turns)


def program(path: Path, content: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No binary is installed and no variable names one."""
    monkeypatch.delenv("ZEROCLAW_BIN", raising=False)
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(zeroclaw_adapter, "_DEFAULT", str(tmp_path / "default"))
    return tmp_path / "home"


def test_nothing_installed(home: Path) -> None:
    assert not registry.installed("zeroclaw")
    with pytest.raises(NotInstalledError, match=r"clawbench install zeroclaw.*ZEROCLAW_BIN"):
        CLAW.container_arguments()


def test_an_installed_binary_is_found_and_mounted_alone(home: Path) -> None:
    binary = program(home / "zeroclaw" / CLAW.version / "bin" / "zeroclaw")
    assert not registry.installed("zeroclaw"), "without its marker it is half an install"
    (home / "zeroclaw" / CLAW.version / MARKER).touch()
    runtime = CLAW.runtime()
    assert (runtime.version, runtime.location, runtime.found_by) == (CLAW.version, binary, "clawbench install")
    assert [mount.source for mount in CLAW.container_arguments().mounts] == [binary.resolve()]


def test_a_variable_names_a_binary_whose_version_is_its_content(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = program(home / "own")
    monkeypatch.setenv("ZEROCLAW_BIN", str(binary))
    first = CLAW.runtime()
    assert (first.location, first.found_by) == (binary, "ZEROCLAW_BIN")
    assert first.version.startswith("sha256-")
    program(binary, "#!/bin/sh\nexit 1\n")
    assert CLAW.runtime().version != first.version
    binary.chmod(0o644)
    with pytest.raises(NotInstalledError, match=r"ZEROCLAW_BIN=.*own is not a program"):
        CLAW.runtime()


def test_the_default_place_is_looked_at_last(home: Path) -> None:
    program(Path(zeroclaw_adapter._DEFAULT))
    assert CLAW.runtime().found_by == "ZEROCLAW_BIN's default"


def test_a_binary_that_does_not_run_in_the_container_is_said_with_what_to_do() -> None:
    said = b"zeroclaw: /lib/libc.so.6: version `GLIBC_2.34' not found (required by zeroclaw)\n"
    with pytest.raises(NotInstalledError, match=r"GLIBC_2\.34' not found.*C library.*ZEROCLAW_BIN"):
        CLAW.create_agent(Recorder(1, b"", said), TASK)
    with pytest.raises(TimeoutError):
        CLAW.create_agent(Recorder(None), TASK)


def test_the_config_points_at_the_gateway_and_allows_what_stays_inside_the_case() -> None:
    shell = Recorder()
    CLAW.create_agent(shell, TASK)
    config = tomllib.loads(shell.files["/claw/zeroclaw/config.toml"].decode())
    assert list(config["providers"]["models"]) == ["custom"]
    (provider,) = config["providers"]["models"]["custom"].values()
    assert (provider["uri"], provider["model"], provider["api_key"]) == (TASK.base_url, TASK.model, "placeholder")
    (agent,), (risk,), (profile,) = (
        config[name].values() for name in ("agents", "risk_profiles", "runtime_profiles")
    )
    assert agent["workspace"]["path"] == "/testbed"
    assert profile["max_tool_iterations"] == 17
    assert risk["allowed_tools"] == list(CLAW.allowed_tools or ())
    assert risk["shell_env_passthrough"] == ["A", "HOME", "PATH"]


def test_a_prompt_of_any_kind_is_one_argument() -> None:
    for prompt in ("--help", "$(id) `id` \"'\\\n\t\x7f", "\U0010ffff" * (PROMPT_LIMIT // 4)):
        shell = Recorder()
        CLAW.send_task(shell, task(prompt))
        assert shell.commands[0][-1] == f"--message={prompt}"
        assert len(shell.commands[0][-1].encode()) < 128 << 10


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("x" * (PROMPT_LIMIT + 1), f"{PROMPT_LIMIT + 1} bytes"),
        ("é" * (PROMPT_LIMIT // 2 + 1), "bytes"),
        ("a\0b", "NUL"),
        ("\ud800", "not valid Unicode"),
        ("see [IMAGE:/testbed/logo.png] there", r"\[IMAGE:/testbed/logo.png\]"),
        ("[AUDIO:x", "attachment"),
    ],
)
def test_a_prompt_that_would_not_arrive_whole_is_refused(prompt: str, said: str) -> None:
    shell = Recorder()
    with pytest.raises(BadOptionError, match=said):
        CLAW.send_task(shell, task(prompt))
    assert shell.commands == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[provider]\napi_key = "sk-real"', "provider.api_key"),
        ('[providers.models.openai.x]\napi_key = "sk-real"', "providers"),
        ("[profile]\nmax_tool_iterations = 3", "profile.max_tool_iterations"),
        ('[profile]\nshell_timeout_secs = "sk-real"', "profile.shell_timeout_secs"),
        ("[web_search]\nenabled = true", "web_search"),
        ('a = "sk-real', "not valid TOML"),
    ],
)
def test_a_config_that_sets_what_the_suite_fixes_is_refused_without_showing_values(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(content)
    with pytest.raises(BadOptionError, match=said) as caught:
        zeroclaw_config.make_config(file, TASK, [])
    assert "sk-real" not in str(caught.value)


def test_an_empty_config_is_the_template(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()
    template = zeroclaw_config.make_config(CLAW.template, TASK, [])
    assert zeroclaw_config.make_config(tmp_path / "empty.toml", TASK, []) == template


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_as_toml_is_read_as_it_was(config: dict[str, Any]) -> None:
    assert tomllib.loads(zeroclaw_config.to_toml(config)) == config


def costs(folder: Path, *rows: object, rest: str = "") -> Path:
    (folder / "data").mkdir()
    (folder / "data" / "costs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + rest)
    return folder


def used(**counts: object) -> dict[str, object]:
    return {"usage": {"input_tokens": 100, "output_tokens": 7, **counts}}


def test_usage_is_the_sum_of_all_requests_in_classes_that_do_not_overlap(tmp_path: Path) -> None:
    folder = costs(tmp_path, used(cached_input_tokens=40), used(), used(cached_input_tokens=0), rest='{"usage"')
    assert CLAW.usage(folder, b"") == TokenUsage(260, 40, None, 21)


def test_a_cache_that_was_not_reported_is_unknown(tmp_path: Path) -> None:
    assert CLAW.usage(costs(tmp_path, used(), used()), b"") == TokenUsage(200, None, None, 14)


@pytest.mark.parametrize("row", [{}, [], "x", {"usage": 3}, used(input_tokens="9"), used(cached_input_tokens=[])])
def test_costs_that_lie_in_form_give_no_usage(tmp_path: Path, row: object) -> None:
    assert CLAW.usage(costs(tmp_path, row), b"") is None


def test_no_session_gives_no_usage(tmp_path: Path) -> None:
    assert CLAW.usage(tmp_path, b"") is None
    assert CLAW.usage(costs(tmp_path), b"") is None


def test_the_final_message_is_the_output() -> None:
    assert CLAW.final_message(Path(), b"```diff\n+ a \n```\n\n") == "```diff\n+ a \n```\n"
    assert CLAW.final_message(Path(), b"") == ""
