"""What an agent wrote is never loaded on the host, whatever a command names, not even in a dry run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bench_run import ROOT, environment
from support.made_up import made_up_case, made_up_run

from records.case_id import CaseId
from records.run_folder import RunDirectory

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


def assert_nothing_runs(words: list[str], folder: Path, mark: Path) -> None:
    command = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert not mark.exists(), f"{words} in {folder}: {mark.read_text()}\n{done.stdout}{done.stderr}"
    assert "session/" not in done.stdout, done.stdout
