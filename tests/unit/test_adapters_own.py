# ruff: noqa: ARG002 - a shell takes what it need not look at
"""Without the gateway: whose config a claw is run on, which keys go along, and that no copy of them is kept."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters import user_config
from adapters.base import BadOptionError, CommandResult, NotInstalledError, Task, has_own_config
from adapters.generic import generic_config
from adapters.openclaw import openclaw_credentials
from adapters.registry import CLAWS, adapter
from adapters.zeroclaw import zeroclaw_config

TASK = Task("p", "/testbed", None, "", 60.0, 17)
KEY = "sk-of-the-user"
FILES = {
    "openclaw": "openclaw.local.json",
    "hermes": "config.local.yaml",
    "nanobot": "config.local.json",
    "zeroclaw": "config.local.toml",
    "generic": "mykey.local.json",
}
PLACES = {
    "openclaw": "/claw/openclaw/openclaw.json",
    "hermes": "/claw/hermes/config.yaml",
    "nanobot": "/claw/nanobot/config.json",
    "zeroclaw": "/claw/zeroclaw/config.toml",
    "generic": "/claw/generic/agent/mykey.py",
}
OWN: dict[str, str] = {
    "openclaw": json.dumps(
        {
            "models": {"providers": {"mine": {"apiKey": KEY, "models": [{"id": "m"}]}}},
            "agents": {"defaults": {"model": {"primary": "mine/m"}, "workspace": "/home/me"}, "list": [{}]},
            "channels": {"telegram": {"botToken": "secret of another kind"}},
            "tools": {"web": {"search": {"enabled": True}}},
        }
    ),
    "hermes": f"model: m\ncustom_providers: [{{name: mine, api_key: {KEY}}}]\nterminal: {{backend: ssh}}\n",
    "nanobot": json.dumps(
        {
            "providers": {"openrouter": {"apiKey": KEY}},
            "agents": {"defaults": {"model": "m", "workspace": "/home/me"}},
            "tools": {"web": {"enable": True}},
        }
    ),
    "zeroclaw": f'[providers.models.openrouter.mine]\napi_key = "{KEY}"\nmodel = "m"\n'
    '[risk_profiles.other]\nlevel = "x"\n',
    "generic": json.dumps({"native_oai_config": {"apikey": KEY, "apibase": "https://x.example/v1", "model": "m"}}),
}
READ: dict[str, Callable[[bytes], Any]] = {
    "openclaw": json.loads,
    "hermes": yaml.safe_load,
    "nanobot": json.loads,
    "zeroclaw": lambda content: tomllib.loads(content.decode()),
}


@dataclass
class Recorder:
    """A shell that keeps what it was handed, and gives it back."""

    files: dict[str, bytes] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        self.commands.append(list(command))
        self.environment = dict(environment or {})
        said = b"PATH=/bin\0" if command[0] == "cat" else b'{"PATH": "/bin"}'
        return CommandResult(0, said, b"", 0.0)

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        self.files |= {f"{folder}/{name}": content for name, content in files.items()}

    def fetch(self, path: str, destination: Path) -> list[Path]:
        for name, content in self.files.items():
            below = Path(name).name if name == path else name.removeprefix(f"{path}/")
            if name == path or below != name:
                (destination / below).parent.mkdir(parents=True, exist_ok=True)
                (destination / below).write_bytes(content)
        return []


@pytest.fixture(params=CLAWS)
def claw(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A claw whose user has a config of their own, and keys in variables."""
    name = request.param
    try:
        adapter(name).runtime()
    except NotInstalledError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(user_config, "CONFIGS", tmp_path / "configs")
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in user_config.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "configs" / name).mkdir(parents=True)
    return adapter(name)


def created(claw: Any, folder: Path, task: Task = TASK) -> Recorder:
    (folder / "configs" / claw.name / FILES[claw.name]).write_text(OWN[claw.name])
    shell = Recorder()
    claw.create_agent(shell, task)
    return shell


def test_every_claw_of_the_suite_can() -> None:
    assert all(has_own_config(adapter(name)) for name in CLAWS)


def test_without_a_config_of_ones_own_it_says_where_to_write_it(claw: Any) -> None:
    with pytest.raises(BadOptionError, match=rf"--network own.*{FILES[claw.name].replace('.', '[.]')}"):
        claw.create_agent(Recorder(), TASK)


def test_the_users_config_goes_along_with_what_a_case_fixes_set_over_it(claw: Any, tmp_path: Path) -> None:
    content = created(claw, tmp_path).files[PLACES[claw.name]]
    assert KEY.encode() in content
    assert b"secret of another kind" not in content
    assert b"/home/me" not in content
    if claw.name == "generic":
        return
    config = READ[claw.name](content)
    match claw.name:
        case "openclaw":
            assert config["agents"]["defaults"]["model"] == {"primary": "mine/m"}
            assert config["agents"]["defaults"]["workspace"] == "/testbed"
            assert not config["tools"]["web"]["search"]["enabled"]
        case "hermes":
            assert config["model"] == {"default": "m"}
            assert (config["agent"]["max_turns"], config["terminal"]["backend"]) == (17, "local")
        case "nanobot":
            assert (
                config["agents"]["defaults"] | {"model": "m", "maxToolIterations": 17}
                == config["agents"]["defaults"]
            )
            assert not config["tools"]["web"]["enable"]
        case "zeroclaw":
            assert config["agents"]["clawbench"]["model_provider"] == "openrouter.mine"
            assert config["runtime_profiles"]["clawbench"]["max_tool_iterations"] == 17
            assert config["risk_profiles"]["other"] == {"level": "x"}


def test_a_model_that_the_task_names_is_taken(claw: Any, tmp_path: Path) -> None:
    content = created(claw, tmp_path, replace(TASK, model="other/model")).files[PLACES[claw.name]].decode()
    assert "other/model" in content
    if claw.name == "generic":
        code = f"{content}\nprint(native_oai_config['model'], native_oai_config['apikey'])"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert said == f"other/model {KEY}\n"


def test_keys_in_variables_reach_the_claws_that_read_them(
    claw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    shell = created(claw, tmp_path)
    claw.send_task(shell, TASK)
    forwarded = {name: value for name, value in shell.environment.items() if name.endswith("_API_KEY")}
    assert forwarded == ({} if claw.name == "zeroclaw" else {"DEEPSEEK_API_KEY": KEY})
    claw.send_task(shell, replace(TASK, base_url="http://127.0.0.1:1/v1", model="m"))
    assert "DEEPSEEK_API_KEY" not in shell.environment


def test_no_file_with_a_key_gets_into_the_artifacts(claw: Any, tmp_path: Path) -> None:
    shell = created(claw, tmp_path)
    session = tmp_path / "session"
    claw.backup_session(shell, session)
    kept = [path for path in session.rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_with_the_gateway_the_rendered_config_is_kept_and_the_users_whole_one_refused(
    claw: Any, tmp_path: Path
) -> None:
    with pytest.raises(BadOptionError, match="for --network own") as caught:
        created(claw, tmp_path, replace(TASK, base_url="http://127.0.0.1:1/v1", model="m"))
    assert KEY not in str(caught.value)


def test_zeroclaw_must_be_told_which_of_several_providers_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    several = '[providers.models.a.x]\n[providers.models.b.y]\nmodel = "m"\n'
    for content in (several, "", "providers = 3", "[providers.models]\na = 3\n"):
        file.write_text(content)
        with pytest.raises(BadOptionError, match=r"\[agents.clawbench\]"):
            zeroclaw_config.make_config(file, TASK, [])
    file.write_text(several + '[agents.clawbench]\nmodel_provider = "b.y"\n')
    config = zeroclaw_config.make_config(file, replace(TASK, model="other"), [])
    assert config["providers"]["models"]["b"]["y"]["model"] == "other"
    assert config["agents"]["clawbench"]["model_provider"] == "b.y"


def test_a_mykey_in_python_is_not_run_here(tmp_path: Path) -> None:
    file = tmp_path / "mykey.local.py"
    file.write_text("import os\noai_config = {'apikey': os.environ['DEEPSEEK_API_KEY'], 'model': 'm'}")
    code = generic_config.own_config(file, replace(TASK, model='x"y')).decode() + "\nprint(oai_config)"
    told = {"PATH": "/usr/bin", "DEEPSEEK_API_KEY": KEY}
    said = subprocess.run(
        [sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True
    ).stdout
    assert said == str({"apikey": KEY, "model": 'x"y'}) + "\n"


def store(folder: Path, profiles: object) -> Path:
    """A state folder with a credential store of openclaw's, and what else is in one."""
    (folder / "state").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "state" / "openclaw.sqlite")) as connection:
        connection.execute(
            "CREATE TABLE config_machine_state (state_key TEXT, value_json TEXT, updated_at_ms INTEGER)"
        )
        connection.execute("CREATE TABLE diagnostic_events (event TEXT)")
        connection.execute("INSERT INTO diagnostic_events VALUES ('of another run')")
        rows = [
            ("authProfiles.store", profiles),
            ("auth.sharedStore", {"location": "state-db"}),
            ("pairing", "token"),
        ]
        values = [(key, json.dumps(value), 1) for key, value in rows]
        connection.executemany("INSERT INTO config_machine_state VALUES (?, ?, ?)", values)
        connection.commit()
    return folder


def test_of_openclaws_credential_store_the_api_keys_go_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"type": "api_key", "provider": "mine", "key": KEY}
    profiles = {"mine:manual": key, "o": {"type": "oauth", "refresh": "a login"}}
    folder = store(tmp_path / "state", {"version": 1, "profiles": profiles})
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(folder))
    content = openclaw_credentials.own_store()
    assert content is not None
    for gone in (b"a login", b"of another run", b"pairing"):
        assert gone not in content
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        rows = dict(connection.execute("SELECT state_key, value_json FROM config_machine_state"))
    assert json.loads(rows["authProfiles.store"]) == {"version": 1, "profiles": {"mine:manual": key}}
    assert "auth.sharedStore" in rows


def test_a_store_of_another_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    assert openclaw_credentials.own_store() is None
    store(tmp_path / "a", [KEY])
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "a"))
    with pytest.raises(BadOptionError, match="not a credential store"):
        openclaw_credentials.own_store()
