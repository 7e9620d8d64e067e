"""A project that only shares an environment with this suite: its own pytest is as it was without it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from support.bench_run import environment

CONFTEST = """
import pytest

def pytest_addoption(parser):
    for name in ("--model", "--claw", "--samples", "--run-id", "--artifacts", "--set"):
        parser.addoption(name, default="its own")

@pytest.fixture
def case(request):
    return request.config.getoption("--model")
"""
TEST = """
import sys

def test_it(case):
    assert case == "mine"
    assert not {name.partition(".")[0] for name in sys.modules} & {"clawbench", "adapters", "workspace", "gateway"}
"""


def test_options_and_fixtures_of_a_foreign_project_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_foreign.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--model=mine", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_no_plugin_of_pytest_comes_with_the_package() -> None:
    assert not distribution("clawbench").entry_points.select(group="pytest11")
