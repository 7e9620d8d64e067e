import json

import pytest

from confmerge import Config, ConfigSyntaxError, UnknownFormat
from confmerge.cli import main


@pytest.fixture()
def files(tmp_path):
    (tmp_path / "base.ini").write_text("[server]\nhost = localhost\nport = 80\n[server.tls]\nenabled = no\n")
    (tmp_path / "site.json").write_text('{"server": {"port": 443, "tls": {"enabled": true}}}')
    return tmp_path


def test_later_files_win(files):
    config = Config.load(files / "base.ini", files / "site.json")
    assert config["server.host"] == "localhost"
    assert config["server.port"] == 443
    assert config["server.tls.enabled"] is True


def test_origin(files):
    config = Config.load(files / "base.ini", files / "site.json", defaults={"debug": False})
    assert config.origin("server.host").endswith("base.ini")
    assert config.origin("server.port").endswith("site.json")
    assert config.origin("debug") == "defaults"


def test_environment_and_overrides():
    environ = {"APP_SERVER__PORT": "81", "APP_NAME": "x", "OTHER_NAME": "y"}
    config = Config.load(prefix="APP", environ=environ, overrides=["name=z"])
    assert config.as_dict() == {"server": {"port": 81}, "name": "z"}


def test_missing_files_are_passed_over(files):
    assert len(Config.load(files / "none.json")) == 0
    with pytest.raises(FileNotFoundError):
        Config.load(files / "none.json", missing_ok=False)


def test_unknown_format(tmp_path):
    (tmp_path / "x.yaml").write_text("a: 1")
    with pytest.raises(UnknownFormat, match=".yaml"):
        Config.load(tmp_path / "x.yaml")


def test_syntax_errors_name_the_line(tmp_path):
    (tmp_path / "x.json").write_text('{\n"a": 1,\n}')
    with pytest.raises(ConfigSyntaxError, match=r"x\.json:3: "):
        Config.load(tmp_path / "x.json")


def test_command_line(files, capsys):
    assert main(["show", str(files / "base.ini"), "--set", "server.port=8080"]) == 0
    assert json.loads(capsys.readouterr().out)["server"]["port"] == 8080
    assert main(["show", str(files / "none.json")]) == 1
