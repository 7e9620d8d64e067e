"""What an agent wrote is never loaded on the host, whatever a command names, not even in a dry run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.bench_run import ROOT, environment
from support.made_up import made_up_case, made_up_run

from adapters.base import CommandResult
from clawbench.run.agent_run import AgentRun, FreshContainer
from evaluation.outcomes import Ending
from records.case_id import CaseId
from records.run_folder import RunDirectory
from workspace.workspace_errors import ExportError

CODE = "import pathlib\npathlib.Path({mark!r}).write_text(__file__)\n"
DOCTEST = ">>> import pathlib\n>>> _ = pathlib.Path({mark!r}).write_text('doctest')\n"
HOSTILE = {
    "conftest.py": CODE,
    "test_it.py": CODE,
    "test_folder/conftest.py": CODE,
    "deep/er/test_it.py": CODE,
    "test_it.txt": DOCTEST,
    "test_it.txt.saved": DOCTEST,
    "sitecustomize.py": CODE,
    "pytest.ini": "[pytest]\naddopts = -p sitecustomize\npython_files = *\n",
    "pyproject.toml": "[tool.pytest.ini_options]\npython_files = ['*']\npythonpath = ['.']\n",
}


@pytest.fixture
def artifacts() -> Iterator[Path]:
    """Inside the checkout, where pytest looks for tests."""
    folder = ROOT / "artifacts" / f"hostile-{os.getpid()}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "it ran"


def test_nothing_in_a_session_is_loaded(artifacts: Path, mark: Path, tmp_path: Path) -> None:
    run = made_up_run(RunDirectory(artifacts / "r"))
    case = made_up_case(run, CaseId("nanobot", "demo__x-1"))
    session = case.path / "session"
    for name, text in HOSTILE.items():
        (session / name).parent.mkdir(parents=True, exist_ok=True)
        (session / name).write_text(text.format(mark=str(mark)))
    # as an older version left it: the guard alone keeps pytest out, unless a command names the session itself
    for words in (["--ignore=tests", "."], [str(artifacts)], ["tests_bench", str(run.path)]):
        assert_nothing_runs(words, ROOT, mark)
    case.disarm_session()
    for place, folder in ((session, ROOT), (session, tmp_path), (artifacts, tmp_path), (session, session)):
        assert_nothing_runs([str(place)], folder, mark)
    saved = {str(path.relative_to(session)) for path in session.rglob("*") if path.is_file()}
    assert {"conftest.py.saved", "test_it.txt.saved", "test_it.txt.saved.saved", "pytest.ini.saved"} <= saved
    assert "talk.jsonl" in saved


def test_an_export_that_fails_leaves_nothing_that_would_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backup(_shell: object, destination: Path) -> None:
        destination.mkdir(parents=True)
        (destination / "conftest.py").write_text("")

    def fails(*_: object, **__: object) -> None:
        raise ExportError("the patch does not reproduce the tree")

    folder = made_up_run(RunDirectory(tmp_path / "r")).case(CaseId("nanobot", "demo__x-1"))
    case: Any = SimpleNamespace(folder=folder, phase=lambda *_: nullcontext())
    workspace: Any = SimpleNamespace(container=None)
    start: Any = None
    container = FreshContainer(case, workspace, start, lambda: None)
    adapter: Any = SimpleNamespace(backup_session=backup, agent_files=())
    result = CommandResult(0, b"", b"", 1.0)
    container._agent_run = AgentRun(adapter, result, Ending.FINISHED, "", None)
    monkeypatch.setattr("clawbench.run.agent_run.export", fails)
    with pytest.raises(ExportError):
        container.export()
    assert [path.name for path in (folder.path / "session").iterdir()] == ["conftest.py.saved"]


def assert_nothing_runs(words: list[str], folder: Path, mark: Path) -> None:
    command = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert not mark.exists(), f"{words} in {folder}: {mark.read_text()}\n{done.stdout}{done.stderr}"
    assert "session/" not in done.stdout, done.stdout
