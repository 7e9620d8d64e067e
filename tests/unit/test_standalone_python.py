"""`clawbench install python`: the real uv, against a source that is a folder, gives nothing, or never answers."""

from __future__ import annotations

import json
import platform
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapters.runtimes import container_python
from clawbench.cli import app
from clawbench.install import standalone_python
from clawbench.install.base import InstallError
from clawbench.install.packages import find_uv
from clawbench.install.standalone_python import install_python

pytestmark = pytest.mark.skipif(find_uv() is None, reason="uv is not installed")


@pytest.fixture(autouse=True)
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAW_PYTHON_HOME", "UV_PYTHON_INSTALL_MIRROR", "UV_HTTP_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with the least that uv takes for a Python."""
    tree = tmp_path / "python"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "python3.12").write_text("#!/bin/sh\n")
    (tree / "bin" / "python3.12").chmod(0o755)
    (tree / "lib" / "python3.12").mkdir(parents=True)
    (tree / "lib" / "python3.12" / "_sysconfigdata__linux_.py").write_text(
        "# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n"
    )
    with tarfile.open(tmp_path / "python.tar.gz", "w:gz") as archive:
        archive.add(tree, "python")
    machine = platform.machine()
    row = {
        "name": "cpython",
        "arch": {"family": machine, "variant": None},
        "os": "linux",
        "libc": "gnu",
        **{"major": 3, "minor": 12, "patch": 99, "prerelease": ""},
        "url": (tmp_path / "python.tar.gz").as_uri(),
        **{"sha256": None, "variant": None, "build": None},
    }
    listed = tmp_path / "downloads.json"
    listed.write_text(json.dumps({f"cpython-3.12.99-linux-{machine}-gnu": row}))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(listed))


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a source that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_it_is_had_found_and_had_once(source: None, tmp_path: Path) -> None:
    assert container_python().mounts == ()
    said: list[str] = []
    install_python(said.append)
    (mount,) = container_python().mounts
    assert container_python().version == "3.12"
    assert mount.source.is_relative_to(tmp_path / "pythons")
    assert "install those again" in said[-1]
    said.clear()
    install_python(said.append)
    assert said == [f"a standalone Python 3.12 is there already: {mount.source}"]


def test_half_a_tree_is_not_left_behind(source: None, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "python.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "python" / "bin", "python/bin")
    with pytest.raises(InstallError, match="could not get"):
        install_python(lambda _line: None)
    assert container_python().mounts == ()


def test_a_source_that_refuses_is_told_with_what_else_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    done = CliRunner().invoke(app, ["install", "python"])
    assert done.exit_code == 2, done.output
    assert "CLAW_PYTHON_HOME" in done.output
    assert "UV_PYTHON_INSTALL_MIRROR" in done.output
    assert "Traceback" not in done.output
    assert container_python().mounts == ()


def test_a_source_that_never_answers_is_waited_for_so_long(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", silent)
    monkeypatch.setattr(standalone_python, "DEADLINE", 2.0)
    with pytest.raises(InstallError, match="gave no Python within 2 s"):
        install_python(lambda _line: None)
    assert container_python().mounts == ()


def test_a_tree_that_is_there_is_taken_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree" / "bin").mkdir(parents=True)
    (tmp_path / "tree" / "bin" / "python3.11").touch()
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(tmp_path / "tree"))
    said: list[str] = []
    install_python(said.append)
    assert said == [f"a standalone Python 3.11 is there already: {tmp_path / 'tree'}"]


def test_who_wants_the_images_own_python_gets_no_other(source: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAW_PYTHON_HOME", "")
    with pytest.raises(InstallError, match="unset it"):
        install_python(lambda _line: None)
