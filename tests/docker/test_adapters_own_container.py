"""Without the gateway for real: each claw on its user's own config, with a model that wants a key."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import docker
import pytest
import yaml
from support.adapter_world import (
    SUBJECTS,
    ScriptedModel,
    Subject,
    claws_workspace,
    connected,
    embedded_image,
    make_task,
)

from adapters import user_config
from adapters.base import NotInstalledError
from adapters.registry import adapter
from workspace.container import GATEWAY_PORT

pytestmark = pytest.mark.docker

ADDRESS = f"http://127.0.0.1:{GATEWAY_PORT}/v1"
KEY = "sk-of-the-user-0123456789"
MODEL = "vendor/m-1"
MODELS = [{"id": MODEL, "name": MODEL, "compat": {"supportsUsageInStreaming": True}}]
MINE = {"baseUrl": ADDRESS, "api": "openai-completions", "models": MODELS}
CONFIGS = {
    # its key is in its own store
    "openclaw.local.json": json.dumps(
        {
            "auth": {"profiles": {"mine:manual": {"provider": "mine", "mode": "api_key"}}},
            "models": {"providers": {"mine": MINE}},
            "plugins": {"enabled": False},
            "agents": {"defaults": {"model": {"primary": f"mine/{MODEL}"}}},
        }
    ),
    "config.local.yaml": yaml.safe_dump(
        {
            "model": {"default": MODEL, "provider": "custom:mine"},
            "custom_providers": [
                {"name": "mine", "base_url": ADDRESS, "key_env": "DEEPSEEK_API_KEY", "model": MODEL}
            ],
        }
    ),
    "config.local.json": json.dumps(
        {
            "providers": {"custom": {"apiKey": "${DEEPSEEK_API_KEY}", "apiBase": ADDRESS}},
            "agents": {"defaults": {"provider": "custom", "model": MODEL}},
        }
    ),
    "config.local.toml": f'[providers.models.custom.mine]\nuri = "{ADDRESS}"\napi_key = "{KEY}"\n'
    f'model = "{MODEL}"\nnative_tools = true\n',
    "mykey.local.py": "import os\nnative_oai_config = {'apikey': os.environ['DEEPSEEK_API_KEY'], "
    f"'apibase': '{ADDRESS}', 'model': '{MODEL}'}}\n",
}
STORE = {"version": 1, "profiles": {"mine:manual": {"type": "api_key", "provider": "mine", "key": KEY}}}


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    with connected() as client:
        yield client


def make_store(folder: Path) -> Path:
    """A state folder of openclaw's with a stored API key; openclaw itself fills in what else it wants there."""
    (folder / "state").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "state" / "openclaw.sqlite")) as connection:
        columns = "state_key TEXT NOT NULL PRIMARY KEY, value_json TEXT NOT NULL, updated_at_ms INTEGER NOT NULL"
        connection.execute(f"CREATE TABLE config_machine_state ({columns}) STRICT")
        rows = [("authProfiles.store", json.dumps(STORE), 1), ("auth.sharedStore", '{"location":"state-db"}', 1)]
        connection.executemany("INSERT INTO config_machine_state VALUES (?, ?, ?)", rows)
        connection.commit()
    return folder


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_the_claw_works_with_its_users_key_which_no_kept_file_has(
    engine: docker.DockerClient, subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claw = adapter(subject.name)
    try:
        claw.runtime()
    except NotInstalledError as error:
        pytest.skip(str(error))
    (tmp_path / subject.name).mkdir()
    for name, content in CONFIGS.items():
        (tmp_path / subject.name / name).write_text(content)
    make_store(tmp_path / "home" / ".openclaw")
    for variable in user_config.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(user_config, "CONFIGS", tmp_path)
    task = replace(make_task("Do it.", timeout=900.0), base_url=None, model="")
    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(subject, 1, Path(folder, "s"))
        model.start()
        try:
            with claws_workspace(engine, embedded_image(engine), claw, Path(folder, "s")) as shell:
                claw.create_agent(shell, task)
                result = claw.send_task(shell, task)
                made = shell.run(["cat", "made.txt"], timeout=120).stdout
                shell.workspace.freeze()
                claw.backup_session(shell, tmp_path / "session")
        finally:
            model.stop()
    assert result.exit_code == 0, result
    assert b"seen" in made
    assert [request["model"] for request in model.requests] == [MODEL] * 2
    assert set(model.keys) == {KEY}
    assert claw.usage(tmp_path / "session", result.stdout) == subject.usage
    kept = [path for path in (tmp_path / "session").rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []
