"""The registry, the prompt, and how runtimes are found: all that needs no container."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import prompts, registry, runtimes
from adapters.base import BadOptionError, NotInstalledError, Task, TokenUsage
from adapters.nanobot import VERSION, NanobotAdapter
from adapters.nanobot_config import read_settings, render_config

TASK = Task("p", "/testbed", "http://127.0.0.1:1/v1", "some/model", 60.0, 17)


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No runtime is installed and no variable names one."""
    for name in ("NANOBOT_ENV_PATH", "CLAW_PYTHON_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path))
    return tmp_path


def make_packages(folder: Path, version: str = "0.3.5") -> Path:
    (folder / "nanobot").mkdir(parents=True)
    (folder / "nanobot" / "__init__.py").touch()
    (folder / f"nanobot_ai-{version}.dist-info").mkdir()
    return folder


def test_the_five_claws_are_known_in_their_order() -> None:
    assert registry.CLAWS == ("openclaw", "hermes", "nanobot", "zeroclaw", "generic")


@pytest.mark.parametrize("name", ["openclaw", "hermes", "zeroclaw", "generic"])
def test_a_claw_without_an_adapter_says_so_and_what_can_be_run(name: str) -> None:
    with pytest.raises(NotInstalledError, match=r"no adapter .*can be run: nanobot"):
        registry.adapter(name)
    assert not registry.installed(name)


def test_an_unknown_claw_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadOptionError, match="openclaw, hermes, nanobot"):
        registry.installed("nonobot")


def test_nothing_installed(empty_home: Path) -> None:
    assert not registry.installed("nanobot")
    with pytest.raises(NotInstalledError, match="clawbench install nanobot"):
        registry.adapter("nanobot").container_arguments()


def test_an_installed_runtime_is_found(empty_home: Path) -> None:
    folder = empty_home / "nanobot" / runtimes.folder_name(VERSION, "3.11")
    make_packages(folder / runtimes.PACKAGES)
    assert not registry.installed("nanobot"), "without its marker it is half an install"
    (folder / runtimes.MARKER).write_text("{}")
    runtime = NanobotAdapter().runtime()
    assert (runtime.version, runtime.found_by) == (VERSION, "clawbench install")
    assert NanobotAdapter().container_arguments().mounts[0].source == (empty_home / "nanobot").resolve()


@pytest.mark.parametrize("inside", [".", "lib/python3.12/site-packages"])
def test_a_variable_names_a_target_folder_or_a_venv(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    packages = make_packages(empty_home / "env" / inside, "0.2.9")
    monkeypatch.setenv("NANOBOT_ENV_PATH", str(empty_home / "env"))
    runtime = NanobotAdapter().runtime()
    assert (runtime.version, runtime.found_by) == ("0.2.9", "NANOBOT_ENV_PATH")
    assert runtime.location.samefile(packages)


def test_variables_that_name_nothing_are_refused(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_ENV_PATH", str(empty_home / "gone"))
    with pytest.raises(NotInstalledError, match=r"NANOBOT_ENV_PATH=.*gone"):
        NanobotAdapter().runtime()
    monkeypatch.delenv("NANOBOT_ENV_PATH")
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(empty_home / "gone"))
    with pytest.raises(NotInstalledError, match=r"CLAW_PYTHON_HOME=.*gone"):
        NanobotAdapter().runtime()


def test_a_standalone_python_is_mounted_and_decides_which_runtime_fits(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = empty_home / "python"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "python3.12").touch()
    (tree / "bin" / "python3.12-config").touch()
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(tree))
    assert not registry.installed("nanobot")
    (empty_home / "nanobot" / runtimes.folder_name(VERSION, "3.11")).mkdir(parents=True)
    (empty_home / "nanobot" / runtimes.folder_name(VERSION, "3.11") / runtimes.MARKER).touch()
    assert not registry.installed("nanobot"), "it is installed for another Python"
    folder = empty_home / "nanobot" / runtimes.folder_name(VERSION, "3.12")
    make_packages(folder / runtimes.PACKAGES)
    (folder / runtimes.MARKER).write_text("{}")
    sources = [mount.source for mount in NanobotAdapter().container_arguments().mounts]
    assert sources == [(empty_home / "nanobot").resolve(), tree.resolve()]
    assert runtimes.container_python().command.endswith("/bin/python3.12")


def test_asking_what_is_installed_is_cheap() -> None:
    code = (
        "import sys; from adapters import registry; [registry.installed(name) for name in registry.CLAWS]; "
        "assert not {'docker', 'aiohttp', 'subprocess', 'swebench', 'nanobot'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])


@given(st.text())
def test_a_prompt_is_the_template_but_for_the_issue(issue: str) -> None:
    before, after = (prompts.PROMPTS / "default.txt").read_text("utf-8").split(prompts.PLACEHOLDER)
    assert prompts.render("default.txt", issue) == before + issue + after


def test_an_issue_may_hold_the_placeholder_and_odd_line_ends() -> None:
    issue = "a {{issue}} b\r\n{{issue}}\r"
    assert issue in prompts.render("default.txt", issue)


def test_a_template_that_does_not_hold_the_placeholder_once_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "PROMPTS", tmp_path)
    for content in ("none", "{{issue}} {{issue}}"):
        (tmp_path / "t.txt").write_text(content)
        with pytest.raises(ValueError, match="exactly once"):
            prompts.render("t.txt", "x")


def test_the_digest_is_the_templates() -> None:
    assert len(prompts.prompt_digest("default.txt")) == 64


@pytest.mark.parametrize("prompt", ["a\0b", "half \ud800 pair"])
def test_a_prompt_that_no_request_can_hold_is_refused(prompt: str) -> None:
    with pytest.raises(BadOptionError):
        prompts.prompt_bytes("nanobot", prompt)


def test_the_config_points_at_the_gateway_and_nowhere_else(empty_home: Path) -> None:
    config = render_config(read_settings(NanobotAdapter().config_file()), TASK, ["PATH"])
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


def test_a_users_own_config_is_preferred_and_tunes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.nanobot.CONFIG_FOLDER", tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert NanobotAdapter().config_file().name == "config.json"
    (tmp_path / "config.local.json").write_text('{"agents": {"defaults": {"maxTokens": 99}}}')
    config = render_config(read_settings(NanobotAdapter().config_file()), TASK, [])
    assert config["agents"]["defaults"]["maxTokens"] == 99


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"providers": {"custom": {"apiKey": "sk-real"}}}', "providers"),
        ('{"tools": {"web": {"enable": true}}}', "tools.web"),
        ('{"tools": {"exec": {"enable": false}}}', "tools.exec.enable"),
        ('{"agents": {"defaults": {"model": "another"}}}', "agents.defaults.model"),
        ("{", "JSON"),
        ("[]", "the file"),
    ],
)
def test_a_config_that_sets_what_the_suite_fixes_is_refused_without_showing_values(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "config.local.json"
    file.write_text(content)
    with pytest.raises(BadOptionError, match=said) as caught:
        read_settings(file)
    assert "sk-real" not in str(caught.value)


def session(folder: Path, first: object) -> Path:
    (folder / "s").mkdir()
    (folder / "s" / "a.jsonl").write_text(json.dumps(first) + "\n{}\n")
    return folder


def test_usage_comes_in_classes_that_do_not_overlap(tmp_path: Path) -> None:
    used = {"input_tokens": 100, "output_tokens": 9, "cache_read_tokens": 60, "cache_write_tokens": 10}
    folder = session(tmp_path, {"_type": "metadata", "metadata": {"_last_usage": used}})
    assert NanobotAdapter().usage(folder, b"") == TokenUsage(30, 60, 10, 9)


def test_a_cache_that_was_not_reported_is_unknown(tmp_path: Path) -> None:
    used = {"input_tokens": 100, "output_tokens": 9, "cache_read_tokens": None}
    folder = session(tmp_path, {"metadata": {"_last_usage": used}})
    assert NanobotAdapter().usage(folder, b"") == TokenUsage(100, None, None, 9)


@pytest.mark.parametrize(
    "first", [{}, [], "x", {"metadata": 3}, {"metadata": {"_last_usage": {"input_tokens": "9"}}}]
)
def test_a_session_that_says_nothing_or_lies_in_form_gives_no_usage(tmp_path: Path, first: object) -> None:
    assert NanobotAdapter().usage(session(tmp_path, first), b"") is None


def test_no_session_gives_no_usage(tmp_path: Path) -> None:
    assert NanobotAdapter().usage(tmp_path, b"") is None
