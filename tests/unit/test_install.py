"""Installing a claw: whole or not at all, once, by several at once, and clear when it can't be.

The package index is a folder with one small wheel; pip and uv are the real ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters import registry
from adapters.base import BadOptionError
from adapters.built_in_adapter import BuiltInAdapter
from adapters.runtimes import installed_pythons
from clawbench.cli import app
from clawbench.install import packages
from clawbench.install.base import Installer, InstallError
from clawbench.install.install_claw import install, install_all, installer
from clawbench.run import runtime_digest as runtime_digest_module
from clawbench.run.runtime_digest import DamagedRuntimeError, runtime_digest
from records.files import digest_of

ROOT = Path(__file__).parents[2]
RUN = "import sys; from pathlib import Path; from clawbench.install.install_claw import install; "


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NANOBOT_ENV_PATH", "CLAW_PYTHON_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    return tmp_path / "home"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The least that is a wheel of nanobot-ai 0.3.5."""
    (tmp_path / "wheels").mkdir()
    path = tmp_path / "wheels" / "nanobot_ai-0.3.5-py3-none-any.whl"
    info = "nanobot_ai-0.3.5.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("nanobot/__init__.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: nanobot-ai\nVersion: 0.3.5\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/RECORD", f"nanobot/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return path


def left_over(home: Path) -> list[str]:
    return [path.name for path in (home / "nanobot").glob(".partial-*")]


def test_an_install_is_found_and_a_second_one_has_nothing_to_do(home: Path, wheel: Path) -> None:
    said: list[str] = []
    install("nanobot", said.append, home)
    assert registry.installed("nanobot")
    assert registry.adapter("nanobot").runtime().version == "0.3.5"
    assert left_over(home) == []
    wheel.unlink()
    said.clear()
    install("nanobot", said.append, home)
    assert len(said) == 1
    assert "already" in said[0]


def test_the_list_of_claws_tells_the_whole_place(
    home: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is longer than a narrow terminal's column, as in a pipe."""
    far = tmp_path / ("far-" * 30) / "home"
    monkeypatch.setenv("CLAWBENCH_HOME", str(far))
    install("nanobot", lambda _: None, far)
    listed = CliRunner().invoke(app, ["claws"], env={"COLUMNS": "80"}).output
    assert str(far / "nanobot") in "".join(listed.split())


def test_a_standalone_python_compiles_what_it_will_run(
    home: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "tree" / "bin").mkdir(parents=True)
    (tmp_path / "tree" / "bin" / python).symlink_to(Path(sys.executable).resolve())
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(tmp_path / "tree"))
    install("nanobot", lambda _: None, home)
    (module,) = home.rglob("nanobot/__init__.py")
    assert module.parent.parent.parent.name == f"0.3.5-py{python.removeprefix('python')}"
    (bytecode,) = module.parent.glob("__pycache__/__init__.*.pyc")
    assert f"/opt/claw/nanobot/{module.relative_to(home / 'nanobot')}".encode() in bytecode.read_bytes()


def test_nothing_installed_names_a_path_of_the_host(home: Path, wheel: Path) -> None:
    install("nanobot", lambda _: None, home)
    files = [path for path in home.rglob("site-packages/**/*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        assert str(home).encode() not in content, path
        assert sys.prefix.encode() not in content, path


def test_a_python_that_does_not_run_here_is_no_hindrance(
    home: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree" / "bin").mkdir(parents=True)
    (tmp_path / "tree" / "bin" / "python3.12").touch()
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(tmp_path / "tree"))
    said: list[str] = []
    install("nanobot", said.append, home)
    assert registry.installed("nanobot")
    assert any("does not run here" in line for line in said)


def test_pip_does_it_where_uv_fails(
    home: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "uv"
    broken.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(packages, "find_uv", lambda: str(broken))
    said: list[str] = []
    install("nanobot", said.append, home)
    assert registry.installed("nanobot")
    assert any("trying pip" in line for line in said)


def test_without_an_index_it_says_what_to_look_at_and_leaves_nothing(home: Path) -> None:
    with pytest.raises(InstallError, match="PIP_INDEX_URL"):
        install("nanobot", lambda _: None, home)
    assert not registry.installed("nanobot")
    assert left_over(home) == []


def test_a_killed_install_is_no_install_and_the_next_one_clears_up(home: Path, wheel: Path) -> None:
    kill_at_the_end = (
        "import os, json, signal; json.dumps = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL); "
        f"install('nanobot', print, Path({str(home)!r}))"
    )
    killed = subprocess.run(
        [sys.executable, "-c", RUN + kill_at_the_end], cwd=ROOT, check=False, capture_output=True
    )
    assert killed.returncode == -9, killed
    assert len(left_over(home)) == 1
    assert not registry.installed("nanobot")
    install("nanobot", lambda _: None, home)
    assert registry.installed("nanobot")
    assert left_over(home) == []


def test_several_at_once_make_one(home: Path, wheel: Path) -> None:
    code = RUN + f"install('nanobot', print, Path({str(home)!r}))"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    made = sum(output.count("installing nanobot 0.3.5") for output in outputs)
    assert made == len(installed_pythons(home / "nanobot", "0.3.5"))
    assert left_over(home) == []


def test_an_unknown_claw_is_refused(home: Path) -> None:
    with pytest.raises(BadOptionError):
        install("nonobot", print, home)
    assert not home.exists()


def change_quietly(path: Path) -> None:
    """Change a file and leave its size and its modification time."""
    status = path.stat()
    path.chmod(0o644)
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("damage", [change_quietly, Path.unlink, lambda path: path.with_name("new.py").touch()])
def test_a_damaged_runtime_is_refused_and_installed_again(
    home: Path, wheel: Path, damage: Callable[[Path], None]
) -> None:
    install("nanobot", lambda _: None, home)
    claw = registry.adapter("nanobot")
    whole = runtime_digest(claw, home)
    assert runtime_digest(claw, home) == runtime_digest(claw, home, whole=True) == whole
    damage(next(home.glob("nanobot/*/site-packages/nanobot_ai-0.3.5.dist-info/METADATA")))
    assert claw.runtime().version == "0.3.5"
    with pytest.raises(DamagedRuntimeError, match=r"nanobot's runtime in .* `clawbench install nanobot`"):
        runtime_digest(claw, home)
    said: list[str] = []
    install("nanobot", said.append, home)
    assert any("is not what was installed" in line for line in said)
    assert runtime_digest(claw, home) == whole


def test_an_unchanged_runtime_is_not_read_again(home: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("nanobot", lambda _: None, home)
    claw, read = registry.adapter("nanobot"), list[Path]()

    def read_one(path: Path) -> dict[str, Any]:
        read.append(path)
        return digest_of(path)

    monkeypatch.setattr(runtime_digest_module, "digest_of", read_one)
    monkeypatch.setattr(runtime_digest_module, "_MAY_CHANGE_UNSEEN", 0.0)
    runtime_digest(claw, home)
    files = len(read)
    assert files > 3
    runtime_digest(claw, home)
    assert len(read) == files
    read[0].touch()
    runtime_digest(claw, home)
    runtime_digest(claw, home, whole=True)
    assert len(read) > 2 * files


def test_a_users_own_runtime_has_a_digest_too(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    (own / "nanobot").mkdir(parents=True)
    (own / "nanobot/__init__.py").touch()
    (own / "nanobot_ai-0.3.5.dist-info").mkdir()
    monkeypatch.setenv("NANOBOT_ENV_PATH", str(own))
    claw = registry.adapter("nanobot")
    before = runtime_digest(claw, home)
    (own / "nanobot/__pycache__").mkdir()
    (own / "nanobot/__pycache__/__init__.cpython-311.pyc").touch()
    assert runtime_digest(claw, home) == before
    (own / "nanobot/__init__.py").write_text("import this\n")
    assert claw.runtime().version == "0.3.5"
    assert runtime_digest(claw, home) != before


@pytest.fixture
def only_nanobot_can_be_had(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The claws that can't."""

    def had(name: str) -> Installer:
        if name == "nanobot":
            return installer(name)
        raise InstallError(f"there is no network for {name}")

    monkeypatch.setattr("clawbench.install.install_claw.installer", had)
    return [name for name in registry.CLAWS if name != "nanobot"]


def test_all_goes_on_after_a_claw_that_cannot_be_had(home: Path, only_nanobot_can_be_had: list[str]) -> None:
    said: list[str] = []
    assert install_all(said.append, home) == only_nanobot_can_be_had
    assert registry.installed("nanobot")
    assert said[-1] == f"not installed: {', '.join(only_nanobot_can_be_had)}"
    for name in only_nanobot_can_be_had:
        assert f"{name} is not installed: there is no network for {name}" in said


def test_the_command_for_all_claws_ends_with_1_when_one_is_missing(
    home: Path, only_nanobot_can_be_had: list[str]
) -> None:
    done = CliRunner().invoke(app, ["install", "all"])
    assert done.exit_code == 1, done.output
    assert f"not installed: {', '.join(only_nanobot_can_be_had)}" in done.output


def test_every_claw_has_an_installer_of_the_adapters_version() -> None:
    for name in registry.CLAWS:
        claw = registry.adapter(name)
        assert isinstance(claw, BuiltInAdapter)
        assert installer(name).version == claw.version


@pytest.mark.parametrize(
    ("claw", "pin"),
    [("nanobot", "nanobot-ai==0.3.5"), ("hermes", "hermes-agent==0.19.0"), ("generic", "genericagent==1.0.7")],
)
def test_a_runtime_is_pinned_down_to_the_last_package(claw: str, pin: str) -> None:
    lines = (ROOT / "claw_configs" / claw / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pin in pins
    assert all(line.count("==") == 1 for line in pins)


def test_what_pip_was_told_uv_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_"))]:
        monkeypatch.delenv(name)
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://a.example/simple\ntrusted-host = a.example\n"
        f"find-links = {tmp_path}\n  {tmp_path}/gone\n[install]\ntimeout = 7\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b.example/simple https://c.example/simple")
    monkeypatch.setenv("PIP_CERT", "/some/ca.pem")
    settings = packages.uv_settings(packages.pip_settings())
    assert settings["UV_DEFAULT_INDEX"] == "https://a.example/simple"
    assert settings["UV_INDEX"] == "https://b.example/simple https://c.example/simple"
    assert settings["UV_INSECURE_HOST"] == "a.example"
    assert settings["UV_FIND_LINKS"] == str(tmp_path)
    assert settings["UV_HTTP_TIMEOUT"] == "7"
    assert settings["SSL_CERT_FILE"] == "/some/ca.pem"
    assert packages.uv_flags(packages.pip_settings()) == []
    monkeypatch.setenv("PIP_NO_INDEX", "true")
    assert packages.uv_flags(packages.pip_settings()) == ["--no-index"]


def test_a_setting_that_uv_has_already_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.example/simple")
    assert "UV_DEFAULT_INDEX" not in packages.uv_settings({"index-url": "https://a.example/simple"})


def test_variables_win_over_pips_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[install]\nindex-url = https://file.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.example/simple")
    assert packages.pip_settings()["index-url"] == "https://variable.example/simple"
