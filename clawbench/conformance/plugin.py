"""The conformance suite's part of pytest: its marker, its claws, what is shown, and the table at the end."""

from __future__ import annotations

import inspect
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from adapters.base import NotInstalledError
from adapters.registry import adapter, claws, installed
from clawbench import modes
from clawbench.conformance.laboratory import Laboratory
from clawbench.conformance.runs import Run
from clawbench.conformance.table import FAILS, LIMIT, PASSES, Cell, keep, table_lines
from clawbench.fixtures import BENCH
from clawbench.reporting import INFRASTRUCTURE, told
from clawbench.selection import wanted_claws

MARKER = "conformance"
_MEANING = "the conformance suite: what an adapter must get right, one test a requirement; free of cost"
_CELL = "conformance_cell"
_EVIDENCE = "conformance_evidence"
_PLACE = "conformance_place"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and where cells are gathered."""
    config.addinivalue_line("markers", f"{MARKER}: {_MEANING}")
    config.pluginmanager.register(_Cells(config), "clawbench-conformance-cells")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the suite out unless the command means it: a plain `pytest` runs the benchmark."""
    if collection_path != modes.CONFORMANCE or modes.CONFORMANCE in modes.named(config):
        return None
    return None if re.search(rf"\b{MARKER}\b", config.option.markexpr) else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each claw."""
    if "lab" in metafunc.fixturenames:
        metafunc.parametrize("lab", wanted_claws(metafunc.config), indirect=True)


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Laboratory:
    """The runs of one claw."""
    bench = request.config.stash[BENCH]
    try:
        return Laboratory(bench, request.param, bench.tell or (lambda _line: None))
    except NotInstalledError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> list[str]:
    """What a test that passes wants to be told along with it."""
    lines: list[str] = []
    request.node.user_properties.append((_EVIDENCE, lines))
    return lines


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what broke around a claw in a line, and put the cell into the report."""
    report = yield
    if item.get_closest_marker(MARKER) is None or not isinstance(item, pytest.Function):
        return report
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, INFRASTRUCTURE):
        report.longrepr = f"infrastructure: {told(error)}"
    if report.when == "call" or report.failed:
        report.user_properties += [(_PLACE, _place(item)), (_CELL, _cell(item, report, error))]
    return report


def _place(item: pytest.Function) -> list[int]:
    """Where the requirement stands in the table, as in the tests: workers report in any order."""
    return [item.function.__code__.co_firstlineno, item.callspec.indices.get("run", 0)]


def _cell(item: pytest.Function, report: pytest.TestReport, error: BaseException | None) -> dict[str, str]:
    claw = str(item.callspec.params["lab"])
    requirement = (inspect.getdoc(item.function) or item.name).splitlines()[0].rstrip(".")
    of_many = item.callspec.params.get("run")
    requirement += f": {of_many.about}" if isinstance(of_many, Run) else ""
    if hasattr(report, "wasxfail"):
        result, seen = LIMIT, str(report.wasxfail).removeprefix("reason: ")
    elif report.passed:
        lines = [line for name, value in item.user_properties if name == _EVIDENCE for line in value]  # type: ignore[attr-defined]
        result, seen = PASSES, "; ".join(lines)
    else:
        result, seen = FAILS, str(report.longrepr if isinstance(report.longrepr, str) else error)
    return {"claw": claw, "requirement": requirement, "result": result, "evidence": " ".join(seen.split())[:600]}


class _Cells:
    """Gathers the cells in the controller, and shows them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cells: dict[tuple[str, str], tuple[object, Cell]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a report's cell, wherever the test ran."""
        place = dict(report.user_properties).get(_PLACE)
        for name, value in report.user_properties:
            if name == _CELL and isinstance(value, dict):
                found = {str(key): str(text) for key, text in value.items()}
                version = adapter(found["claw"]).runtime().version if installed(found["claw"]) else "-"
                self._cells[found["claw"], found["requirement"]] = place, Cell(version=version, **found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table."""
        bench = self._config.stash.get(BENCH, None)
        if not self._cells or bench is None or hasattr(self._config, "workerinput"):
            return
        order = {name: number for number, name in enumerate(claws())}
        placed = sorted(self._cells.values(), key=lambda one: (order[one[1].claw], one[0]))
        cells = [cell for _, cell in placed]
        keep(cells, bench.run.path)
        terminalreporter.section("conformance")
        for line in table_lines(cells):
            terminalreporter.write_line(line)
