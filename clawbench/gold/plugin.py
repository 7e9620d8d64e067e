"""Gold's part of pytest: its cases in place of the claws', and what runs are told of instances that are broken.

`--gold` is a run like any other: it has a run id, workers, JUnit. It needs no claw and asks no model.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from clawbench import modes
from clawbench.bench import NotBegunError
from clawbench.fixtures import BENCH
from clawbench.gold.broken import broken
from clawbench.gold.check import GoldCheck, results
from clawbench.names import CaseName
from clawbench.reporting import INFRASTRUCTURE, told
from clawbench.session import Session, bench_from
from evaluation.lists import ListedInstance, by_id, listed_instances
from evaluation.outcomes import Verdict
from records.run import RunDirectory, RunError

PART = "gold"
"""The part of a run's manifest that names instances which were known to be broken as its last command began."""
_SHOWN = 10


def is_meant(config: pytest.Config) -> bool:
    """Whether the command asks for gold's cases."""
    return bool(config.option.gold)


def require_own_run(run: RunDirectory) -> None:
    """Refuse the run id of a benchmark, whose reports this would take the place of.

    Raises:
        RunError: its run has cases of claws.
    """
    if run.plan.path.exists():
        raise RunError(f"run {run.run_id} is of claws: give the check of its instances another --run-id, or none")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave gold's cases out unless the command means them, and all others where it does."""
    if not collection_path.is_file():
        return None
    return True if (collection_path == modes.GOLD) != is_meant(config) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each instance, with its markers."""
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
    return GoldCheck(request.config.stash[BENCH], request.param, empty=not request.config.option.no_empty)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what is broken in a few lines; what says nothing of the instance is an error."""
    report = yield
    check = getattr(item, "funcargs", {}).get("gold")
    if not isinstance(check, GoldCheck) or call.excinfo is None:
        return report
    error = call.excinfo.value
    if isinstance(error, (*INFRASTRUCTURE, NotBegunError)):
        report.longrepr = f"infrastructure: {told(error)}"
        report.when = "setup"  # as for a case: pytest counts it as an error then
    elif isinstance(error, AssertionError):
        report.longrepr = check.explanation()
    return report


def instances_of(ids: Iterable[str]) -> set[ListedInstance]:
    """The instances of gold's cases among tests."""
    known = by_id()
    words = (node_id.partition(f"{modes.GOLD.name}::")[2].partition("[")[2].removesuffix("]") for node_id in ids)
    return {known[word] for word in words if word in known}


def tables(run: Path) -> list[str]:
    """The results of a run's checks: those that are broken, and how many are sound."""
    found = results(run)
    if not found:
        return ["no environment was checked"]
    bad = [row for row in found if row["problems"]]
    lines = [f"{len(found) - len(bad)} of {len(found)} environments are sound on this machine"]
    if remembered := sum(row.get("remembered", False) for row in found):
        lines.append(f"{remembered} of them as judged before, and remembered: --no-resume judges anew")
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
        lines.append("runs on this machine are warned of them, and say so in their records")
    return [*lines, f"artifacts: {run}"]


def warn_of_broken(session: Session, cases: Sequence[CaseName], tell: Callable[[str], None]) -> None:
    """Tell of the selected instances that are known to be broken; the run's manifest names them.

    Args:
        session: the run, whose rows are taken.
        cases: all that are selected.
        tell: prints a line.
    """
    found = broken(bench_from(session.handed_over(), "main"), cases)
    session.run.put(PART, {name: mark.facts() for name, mark in found.items()})
    if not found:
        return
    names = sorted(found)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    tell(
        f"WARNING: {len(names)} of the selected instances are broken on this machine (clawbench gold): "
        f"{', '.join(names[:_SHOWN])}{more}. Their cases are run and counted all the same"
    )
    for name in names[:_SHOWN]:
        tell(f"  {name}: {'; '.join(found[name].judged.problems)}")
