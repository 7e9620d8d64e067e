"""The conformance suite in pytest: its marker, its fixtures, its reports, and the table at the end."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator

import pytest

from adapters.base import NotInstalledError
from adapters.registry import adapter, claws, installed
from clawbench.pytest_plugin.reporting import CONTEXT
from clawbench.pytest_plugin.selection import CONFORMANCE, selection
from common.errors import known_error
from tests_bench.conformance.conformance_runs import Run
from tests_bench.conformance.conformance_table import FAILS, LIMIT, PASSES, Cell, keep, table_lines
from tests_bench.conformance.laboratory import Laboratory

_CELL = "conformance_cell"
_EVIDENCE = "conformance_evidence"
_PLACE = "conformance_place"


def register(config: pytest.Config) -> None:
    """Register this module and the collector of the table's cells as plugins."""
    config.pluginmanager.register(sys.modules[__name__], "clawbench-conformance")
    config.pluginmanager.register(_Cells(config), "clawbench-conformance-cells")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each claw."""
    if "lab" in metafunc.fixturenames:
        metafunc.parametrize("lab", selection(metafunc.config).claws, indirect=True)


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Laboratory:
    """The runs of one claw."""
    context = request.config.stash[CONTEXT]
    try:
        return Laboratory(context, request.param, context.tell or (lambda _line: None))
    except NotInstalledError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> list[str]:
    """Lines that the table shows with a test that passes."""
    lines: list[str] = []
    request.node.user_properties.append((_EVIDENCE, lines))
    return lines


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show an infrastructure error in one line, and put the cell into the report."""
    report = yield
    if item.get_closest_marker(CONFORMANCE) is None or not isinstance(item, pytest.Function):
        return report
    error = call.excinfo.value if call.excinfo is not None else None
    if error is not None and (known := known_error(error)):
        report.longrepr = f"infrastructure: {known}"
    if report.when == "call" or report.failed:
        report.user_properties += [(_PLACE, _place(item)), (_CELL, _cell(item, report, error))]
    return report


def _place(item: pytest.Function) -> list[int]:
    """The requirement's place in the table, as in the test file: workers report in any order."""
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
    """Collects the cells in the controller, and shows them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cells: dict[tuple[str, str], tuple[object, Cell]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a report's cell, whichever process ran the test."""
        place = dict(report.user_properties).get(_PLACE)
        for name, value in report.user_properties:
            if name == _CELL and isinstance(value, dict):
                found = {str(key): str(text) for key, text in value.items()}
                version = adapter(found["claw"]).runtime().version if installed(found["claw"]) else "-"
                self._cells[found["claw"], found["requirement"]] = place, Cell(version=version, **found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table."""
        context = self._config.stash.get(CONTEXT, None)
        if not self._cells or context is None or hasattr(self._config, "workerinput"):
            return
        order = {name: number for number, name in enumerate(claws())}
        placed = sorted(self._cells.values(), key=lambda one: (order[one[1].claw], one[0]))
        cells = [cell for _, cell in placed]
        keep(cells, context.run.path)
        terminalreporter.section("conformance")
        for line in table_lines(cells):
            terminalreporter.write_line(line)
