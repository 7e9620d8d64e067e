"""The conformance suite around its tests: when it is collected, what it compares with, and its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clawbench.cli import app
from tests_bench.conformance.conformance_runs import hard_prompt
from tests_bench.conformance.conformance_table import Cell, keep, load, page, table_lines
from tests_bench.conformance.edit_repository import EDITS, START, own_files
from tests_bench.conformance.finished_run import FinishedRun

ROOT = Path(__file__).resolve().parents[2]


def collected(*arguments: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    return {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("-k", "nanobot"), "tests_bench/test_resolved.py"),
        (("-k", "nanobot", "-m", "demo"), "tests_bench/test_resolved.py"),
        (("-k", "nanobot", "-m", "conformance"), "tests_bench/test_conformance.py"),
    ],
)
def test_a_command_means_the_benchmark_or_the_conformance_suite(arguments: tuple[str, ...], file: str) -> None:
    assert collected(*arguments) == {file}


@pytest.mark.parametrize("size", [2000, 64 << 10, 200 << 10])
def test_hard_prompts_have_their_size_and_every_plane(size: int) -> None:
    text = hard_prompt(size, "the-token")
    assert len(text.encode()) == size
    assert text.startswith("-")
    assert "the-token" in text
    assert {ord(letter) >> 16 for letter in text} == set(range(17))


def test_edits_do_what_they_say_they_leave(tmp_path: Path) -> None:
    for name, content in START.items():
        (tmp_path / name).write_bytes(content)
    for edit in EDITS:
        subprocess.run(["bash", "-ec", edit.script], cwd=tmp_path, check=True)
    for edit in EDITS:
        for name, left in edit.leaves.items():
            path = tmp_path / name.decode("utf-8", "surrogateescape")
            if left is None:
                assert not path.exists()
            elif left[0] == "120000":
                assert str(path.readlink()).encode() == left[1]
            else:
                assert (path.read_bytes(), bool(path.stat().st_mode & 0o100)) == (left[1], left[0] == "100755")


def test_files_that_are_named_as_the_claws_own() -> None:
    names = own_files(["/.claw/", "/memory/MEMORY.md", "*.tmp"])
    assert {".claw/kept.txt", "memory/MEMORY.md", "AGENTS.md"} <= set(names)
    assert not any("*" in name for name in names)


def test_what_was_seen_is_told_by_its_heading() -> None:
    run = FinishedRun("a", Path(), "", "", 1.0, 0.0, 0.0, seen="=== a\nx\n\ny\n=== b\n=== end\n")
    assert run.sections == {"a": ["x", "y"], "b": [], "end": []}


CELLS = [
    Cell("zeroclaw", "1", "Edits arrive", "passes", "all_of them"),
    Cell("nanobot", "2", "Edits arrive", "FAILS", "mode"),
    Cell("nanobot", "2", "Turns", "limit", "it has none"),
]


def test_the_table_names_every_cell_that_does_not_just_pass() -> None:
    lines = table_lines(CELLS)
    assert lines[0].split() == ["requirement", "nanobot", "zeroclaw"]
    assert lines[1].split() == ["Edits", "arrive", "FAILS", "passes"]
    assert lines[2].split() == ["Turns", "limit", "-"]
    assert lines[3:] == ["nanobot: Edits arrive: FAILS: mode", "nanobot: Turns: limit: it has none"]


def test_the_page_is_made_of_several_runs_of_which_later_ones_count(tmp_path: Path) -> None:
    for name, cells in (("a", CELLS), ("b", [Cell("nanobot", "3", "Edits arrive", "passes")])):
        (tmp_path / name).mkdir()
        keep(cells, tmp_path / name)
    to = tmp_path / "page.md"
    done = CliRunner().invoke(
        app, ["conformance-table", str(tmp_path / "a"), str(tmp_path / "b"), "--to", str(to)]
    )
    assert done.exit_code == 0, done.output
    text = to.read_text()
    assert "| Edits arrive | passes | passes |" in text
    assert "| Turns | limit | not run |" in text
    assert "- zeroclaw: Edits arrive: all\\_of them" in text
    assert page(load(tmp_path / "a")) != text


def test_a_run_without_results_is_told_in_a_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["conformance-table", str(tmp_path)])
    assert done.exit_code == 2
    assert "conformance.json" in done.output.replace("\n", "")
