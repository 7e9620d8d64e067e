"""`--gold`: replaces the cases of claws by checks of instances.

It is a run like any other, with a run id, workers and JUnit. It needs no claw and no model.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from clawbench.preflight.gold_checks import GoldCheck, results
from clawbench.pytest_plugin.reporting import CONTEXT, shown
from common.errors import known_error
from evaluation.lists import listed_instances
from evaluation.outcomes import Verdict


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Create one check for each instance, with its markers."""
    if "gold" in metafunc.fixturenames:
        instances = [
            pytest.param(
                listed, id=listed.instance_id, marks=[getattr(pytest.mark, name) for name in listed.markers]
            )
            for listed in listed_instances()
        ]
        metafunc.parametrize("gold", instances, indirect=True)


@pytest.fixture
def gold(request: pytest.FixtureRequest) -> GoldCheck:
    """The check of one instance."""
    option = request.config.option
    return GoldCheck(request.config.stash[CONTEXT], request.param, empty=not option.no_empty, repeat=option.repeat)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show in a few lines what is broken; show an infrastructure error as an error."""
    report = yield
    check = getattr(item, "funcargs", {}).get("gold")
    if not isinstance(check, GoldCheck) or call.excinfo is None:
        return report
    error = call.excinfo.value
    if isinstance(error, AssertionError):
        report.longrepr = f"{check.explanation()}\nlogs: {shown(check.folder)}"
    elif known := known_error(error):
        report.longrepr = f"infrastructure: {known}"
        report.when = "setup"  # pytest then counts it as an error, as for a case
    return report


def tables(run: Path) -> list[str]:
    """The results of a run's checks: which environments are broken, and how many are sound."""
    found = results(run)
    if not found:
        return ["no environment was checked"]
    bad = [row for row in found if row["problems"]]
    lines = [f"{len(found) - len(bad)} of {len(found)} environments are sound on this machine"]
    if remembered := sum(row.get("remembered", False) for row in found):
        lines.append(f"{remembered} of them were judged before: --no-resume judges them again")
    if any(row["empty"] == Verdict.NOT_JUDGED for row in found):
        lines.append("some were judged without the empty patch (--no-empty)")
    if bad:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("broken", no_wrap=True)
        table.add_column("why", overflow="fold")
        for row in bad:
            table.add_row(row["instance_id"], "; ".join(row["problems"]))
        stream = io.StringIO()
        Console(file=stream, width=115, color_system=None, markup=False, highlight=False).print(table)
        lines += [line.rstrip() for line in stream.getvalue().splitlines()]
        lines.append("runs on this machine warn about them and record it")
    return [*lines, f"artifacts: {run}"]
