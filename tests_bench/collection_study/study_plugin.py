"""The collection study in pytest: its tests, one for each task, and the tables at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from collection.results import Collected, as_json, markdown, tables
from gateway.behaviours.message_damage import INTACT
from records.files import write_atomically
from tests_bench.collection_study.corpus import StudyTask, study_tasks
from tests_bench.collection_study.study import collect

_ROWS = "collection_study"
FOLDER = "collection-study"
"""The folder in `--artifacts` for the results."""


def register(config: pytest.Config) -> None:
    """Register this module and the collector of the results as plugins."""
    config.pluginmanager.register(sys.modules[__name__], "clawbench-collection-study")
    config.pluginmanager.register(_Results(config), "clawbench-collection-study-results")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each task."""
    if "study_task" in metafunc.fixturenames:
        metafunc.parametrize("study_task", study_tasks(), ids=lambda task: task.name)


@pytest.fixture
def collected(study_task: StudyTask, tmp_path: Path, request: pytest.FixtureRequest) -> Sequence[Collected]:
    """A task's edits in every arm and condition."""
    rows = list(collect(study_task, tmp_path / "study"))
    request.node.user_properties.append((_ROWS, [row.model_dump(mode="json") for row in rows]))
    return rows


class _Results:
    """Collects the results in the controller, and shows them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rows: list[Collected] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a test's results, whichever process ran it."""
        if report.when == "call":
            found = dict(report.user_properties).get(_ROWS, ())
            self._rows += map(Collected.model_validate, found if isinstance(found, list) else ())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The tables, and where the results are."""
        if not self._rows or hasattr(self._config, "workerinput"):
            return
        rows = sorted(self._rows, key=lambda row: row.case)
        folder = Path(self._config.option.artifacts, FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "collection-study.json", as_json(rows, INTACT))
        write_atomically(folder / "collection-study.md", markdown(rows, INTACT).encode())
        terminalreporter.section("collection study")
        for title, headings, cells in tables(rows, INTACT):
            for line in _drawn(title, headings, cells):
                terminalreporter.write_line(line)
        silent = sum(bool(row.corruption) for row in rows)
        terminalreporter.write_line(
            f"{silent} of {len(rows)} patches were applied without an error and gave files that the agent did not write; "
            f"each is shown as a diff in {folder / 'collection-study.md'}"
        )


def _drawn(title: str, headings: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("arm", "condition") else "right", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    console = Console(width=120, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in [*capture.get().splitlines(), ""]]
