"""The virtual environment that `make venv` makes, and what it is locked to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make_venv(project: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(project), "PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
    script = project / "scripts" / "make_venv.sh"
    return subprocess.run([script], env=environment, capture_output=True, text=True, timeout=900, check=False)


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project whose lock names only what the bootstrap needs; the index is the machine's own."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "scripts", project / "scripts")
    (project / "clawbench" / "install").mkdir(parents=True)
    shutil.copy(ROOT / "clawbench" / "install" / "packages.py", project / "clawbench" / "install")
    locked = (ROOT / "requirements.lock").read_text().splitlines()
    wanted = [line for line in locked if line.startswith(("pip==", "setuptools==", "uv=="))]
    (project / "requirements.lock").write_text("\n".join(wanted) + "\n")
    (project / "pyproject.toml").write_text(
        '[project]\nname = "small"\nversion = "1"\n[tool.setuptools]\npackages = ["clawbench.install"]\n'
    )
    return project


def test_a_virtual_environment_is_made_once(small_project: Path) -> None:
    project = small_project
    (project / ".venv" / "bin").mkdir(parents=True)  # one that is broken, and has no stamp
    result = make_venv(project)
    if result.returncode != 0 and "No matching distribution" in result.stderr + result.stdout:
        pytest.skip("no package index answers here")
    assert result.returncode == 0, result
    code = (
        "import pathlib; from clawbench.install import packages; print(pathlib.Path(packages.__file__).resolve())"
    )
    where = subprocess.run(
        [project / ".venv" / "bin" / "python", "-c", code], cwd="/", capture_output=True, text=True, check=True
    )
    assert Path(where.stdout.strip()) == (project / "clawbench" / "install" / "packages.py").resolve()
    assert list((project / ".venv").glob("lib/*/site-packages/setuptools/__pycache__/*.pyc")), (
        "compiled once for all"
    )
    stamp = (project / ".venv" / "clawbench-stamp").stat().st_mtime_ns
    again = make_venv(project)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (project / ".venv" / "clawbench-stamp").stat().st_mtime_ns == stamp


def test_make_alone_lists_its_commands() -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not here")
    listed = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    for command in ("demo", "test", "test-long", "lint", "bench", "docker", "venv", "help"):
        assert f"make {command}" in listed


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
@pytest.mark.parametrize(
    ("claw", "install", "demo", "code"),
    [("all", 0, 0, 0), ("all", 1, 0, 0), ("all", 1, 1, 2), ("all", 2, 0, 2), ("nanobot", 1, 0, 2)],
)
def test_the_demo_of_all_claws_runs_those_that_there_are(
    tmp_path: Path, claw: str, install: int, demo: int, code: int
) -> None:
    """1 is what `clawbench install all` ends with where it could not get one of them."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    commands = {"scripts/setup.sh": 0, ".venv/bin/clawbench": install, ".venv/bin/pytest": demo}
    for name, ends_with in commands.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{program.name} $*"\nexit {ends_with}\n')
        program.chmod(0o755)
    ended = subprocess.run(
        ["make", "-C", str(tmp_path), "demo", f"CLAW={claw}"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == code, ended
    assert ("pytest -n 2 -m demo --model scripted:oracle" in ended.stdout.replace("  ", " ")) == (
        claw == "all" and install < 2
    )


def test_every_dependency_is_locked() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split(";")[0].strip() for line in lines if line and not line.startswith((" ", "#"))]
    assert all(pin.count("==") == 1 for pin in pins)
    names = {pin.split("==")[0] for pin in pins}
    assert {"pytest", "swebench", "docker", "ruff", "mypy", "uv", "pip"} <= names
