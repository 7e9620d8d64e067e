"""openclaw: where it is found, how a container sees it, and its config."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from support.adapter_world import claws_workspace, connected, embedded_image, make_task

from adapters import user_config
from adapters.base import BadOptionError, NotInstalledError, Task
from adapters.openclaw import openclaw_config, openclaw_runtime
from adapters.openclaw.openclaw_adapter import OpenclawAdapter
from adapters.runtimes import MARKER

TASK = Task("p", "/testbed", "http://127.0.0.1:1/v1", "some/model", 60.0, 17)
SECRET = "sk-real"  # noqa: S105 - no password


def make_package(module: Path, version: str = "2026.1.1", dependencies: tuple[str, ...] = ()) -> Path:
    """What `npm` leaves of openclaw, with its dependencies beside it."""
    module.mkdir(parents=True)
    (module / "openclaw.mjs").touch()
    manifest = {"version": version, "dependencies": dict.fromkeys(dependencies, "1.0.0")}
    (module / "package.json").write_text(json.dumps(manifest))
    for name in dependencies:
        (module.parent / name).mkdir(parents=True)
    return module


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is installed and no variable names anything."""
    for name in ("OPENCLAW_MODULE_DIR", "OPENCLAW_NODE_BIN", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(openclaw_runtime, "MODULE_DEFAULT", tmp_path / "usr" / "node_modules" / "openclaw")
    monkeypatch.setattr(openclaw_runtime, "NODE_DEFAULT", tmp_path / "usr" / "node")
    return tmp_path


def make_installed(home: Path) -> Path:
    folder = home / "home" / "openclaw" / openclaw_runtime.VERSION
    make_package(folder / openclaw_runtime.MODULE, openclaw_runtime.VERSION, ("a", "@b/c"))
    node = folder / openclaw_runtime.NODE
    node.parent.mkdir(parents=True)
    node.touch()
    (folder / MARKER).touch()
    return folder


def test_without_a_runtime_it_says_how_to_get_one(home: Path) -> None:
    with pytest.raises(NotInstalledError, match=r"clawbench install openclaw.*OPENCLAW_MODULE_DIR"):
        OpenclawAdapter().runtime()


def test_an_installed_runtime_is_found_and_mounted_with_its_dependencies(home: Path) -> None:
    folder = make_installed(home)
    runtime = OpenclawAdapter().runtime()
    assert (runtime.version, runtime.found_by) == (openclaw_runtime.VERSION, "clawbench install")
    packages, node = OpenclawAdapter().container_arguments().mounts
    assert packages.source == folder / "node_modules"
    assert node.source == folder / openclaw_runtime.NODE
    assert Path(node.target).name != "node", "its folder is on the PATH of the shell tool"
    (folder / MARKER).unlink()
    with pytest.raises(NotInstalledError):
        OpenclawAdapter().runtime()


def test_the_defaults_are_those_of_a_global_npm_install(home: Path) -> None:
    module = make_package(openclaw_runtime.MODULE_DEFAULT, dependencies=("a",))
    with pytest.raises(NotInstalledError, match="node is missing"):
        OpenclawAdapter().runtime()
    openclaw_runtime.NODE_DEFAULT.touch()
    assert OpenclawAdapter().runtime().found_by == "OPENCLAW_MODULE_DIR's default"
    (module / "node_modules").mkdir()
    (module.parent / "a").rename(module / "node_modules" / "a")
    packages, node = OpenclawAdapter().container_arguments().mounts
    assert packages.source == module, "what else is installed globally does not get into the container"
    assert node.source == openclaw_runtime.NODE_DEFAULT


def test_variables_win(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_installed(home)
    module = make_package(home / "own" / "node_modules" / "openclaw")
    monkeypatch.setenv("OPENCLAW_MODULE_DIR", str(module))
    runtime = OpenclawAdapter().runtime()
    assert (runtime.version, runtime.location) == ("2026.1.1", module)
    (home / "node").touch()
    monkeypatch.setenv("OPENCLAW_NODE_BIN", str(home / "node"))
    assert OpenclawAdapter().container_arguments().mounts[1].source == home / "node"


@pytest.mark.parametrize("variable", ["OPENCLAW_MODULE_DIR", "OPENCLAW_NODE_BIN", "OPENCLAW_STATE_DIR"])
def test_a_variable_that_names_nothing_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    make_installed(home)
    monkeypatch.setenv(variable, str(home / "gone"))
    with pytest.raises(NotInstalledError, match=f"{variable}=.*gone"):
        OpenclawAdapter().runtime()


def test_a_package_whose_own_script_has_not_run_is_refused(home: Path) -> None:
    folder = make_installed(home)
    (folder / openclaw_runtime.MODULE / openclaw_runtime.PENDING).touch()
    with pytest.raises(NotInstalledError, match="start it once"):
        OpenclawAdapter().runtime()


def rendered(file: Path, **options: bool) -> dict[str, Any]:
    return openclaw_config.render_config(file, TASK, **options)


def test_the_config_points_at_the_gateway_and_nowhere_else(home: Path) -> None:
    config = rendered(OpenclawAdapter().config_file())
    assert list(config["models"]["providers"]) == ["gateway"]
    assert config["models"]["mode"] == "replace"
    provider = config["models"]["providers"]["gateway"]
    assert (provider["baseUrl"], provider["apiKey"]) == (TASK.base_url, "placeholder")
    assert [model["id"] for model in provider["models"]] == ["some/model"]
    assert config["agents"]["defaults"]["model"] == {"primary": "gateway/some/model"}
    assert config["agents"]["defaults"]["skipBootstrap"]


def test_what_reaches_out_of_the_case_is_off(home: Path) -> None:
    config = rendered(OpenclawAdapter().config_file())
    tools = config["tools"]
    assert tools["allow"] == ["exec", "process", "read", "write", "edit", "apply_patch"]
    assert len(set(tools["deny"])) == 13
    assert not set(tools["deny"]) & set(tools["allow"])
    assert not any(tool["enabled"] for tool in tools["web"].values())
    switches = (
        config["plugins"]["enabled"],
        config["memory"]["search"]["enabled"],
        config["update"]["checkOnStart"],
        config["telemetry"]["enabled"],
        config["models"]["catalogRefresh"]["enabled"],
    )
    assert not any(switches)
    assert config["skills"]["allowBundled"] == ["none"], "an empty list would be all of them"


def test_the_template_says_what_the_defaults_are(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("{}")
    assert rendered(OpenclawAdapter().config_file()) == rendered(tmp_path / "empty.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"models": {"providers": {"own": {"apiKey": "sk-real"}}}}', "models.providers.own"),
        ('{"tools": {"web": {"search": {"enabled": true}}}}', "tools.web"),
        ('{"agents": {"defaults": {"model": "sk-real"}}}', "agents.defaults.model"),
        ('{"plugins": {"enabled": true}}', "plugins"),
        ('{"tools": {"exec": {"timeoutSeconds": 0}}}', "tools.exec.timeoutSeconds"),
        ("{", "JSON"),
        ("[]", "the file"),
    ],
)
def test_a_config_that_sets_what_the_suite_fixes_is_refused_without_showing_values(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "own.json"
    file.write_text(content)
    with pytest.raises(BadOptionError, match=said) as caught:
        rendered(file)
    assert SECRET not in str(caught.value)


def test_of_a_users_own_state_folder_the_settings_are_taken_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {
        "agents": {"defaults": {"thinkingDefault": "high", "workspace": "/home/me"}},
        "models": {"providers": {"own": {"apiKey": SECRET}}},
        "tools": {"exec": {"timeoutSeconds": 60, "ask": "always"}, "web": {"search": {"enabled": True}}},
        "channels": {"telegram": {"botToken": SECRET}},
    }
    (home / "state").mkdir()
    (home / "state" / "openclaw.json").write_text(json.dumps(own))
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(home / "state"))
    file = OpenclawAdapter().config_file()
    config = rendered(file, is_whole_config=True)
    assert config["agents"]["defaults"]["thinkingDefault"] == "high"
    assert config["tools"]["exec"]["timeoutSeconds"] == 60
    plain = rendered(OpenclawAdapter().template)
    del config["agents"]["defaults"]["thinkingDefault"]
    config["tools"]["exec"]["timeoutSeconds"] = plain["tools"]["exec"]["timeoutSeconds"]
    assert config == plain
    file.write_text("// JSON5\n{}")
    with pytest.raises(BadOptionError, match="not valid JSON"):
        rendered(file, is_whole_config=True)


def test_a_local_file_is_preferred(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_config, "CONFIGS", tmp_path)
    claw = OpenclawAdapter()
    assert claw.config_file() == tmp_path / "openclaw" / "openclaw.json"
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "state"))
    assert claw.config_file() == tmp_path / "state" / "openclaw.json"
    (tmp_path / "openclaw").mkdir()
    (tmp_path / "openclaw" / "openclaw.local.json").touch()
    assert claw.config_file() == tmp_path / "openclaw" / "openclaw.local.json"


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    with connected() as client:
        yield client


@pytest.mark.docker
def test_a_node_that_does_not_run_in_the_container_is_said_with_what_to_do(
    engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho 'node: libnode.so.108: cannot open shared object file' >&2; exit 127\n")
    node.chmod(0o755)
    try:
        OpenclawAdapter().runtime()
    except NotInstalledError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("OPENCLAW_NODE_BIN", str(node))
    claw = OpenclawAdapter()
    with claws_workspace(engine, embedded_image(engine), claw) as shell:
        with pytest.raises(NotInstalledError, match=r"libnode.*OPENCLAW_NODE_BIN"):
            claw.create_agent(shell, make_task("Do it."))
        with pytest.raises(BadOptionError, match="NUL"):
            claw.send_task(shell, make_task("a\0b"))
