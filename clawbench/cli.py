"""The `clawbench` command: what is not a pytest run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from docker.errors import DockerException
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapters.base import BadOptionError, NotInstalledError
from adapters.registry import CLAWS, adapter
from adapters.runtimes import default_home
from clawbench.bench import connect
from clawbench.conformance.table import load, page
from clawbench.install import install, install_all
from clawbench.installers.base import InstallError
from clawbench.session import ROOT
from clawbench.task_checks import TaskCheck, check_tasks
from demo.images import ImageBuildError, embedded_ids
from evaluation.harness import EvaluationError
from evaluation.harness4 import FOLDER
from workspace.errors import WorkspaceError
from workspace.owner import sweep

app = typer.Typer(
    help="Set up and look after the benchmark. The benchmark itself is run by pytest: `pytest -n 2 -k nanobot`.",
    no_args_is_help=True,
    add_completion=False,
)
tasks = typer.Typer(help="The embedded task set.", no_args_is_help=True)
app.add_typer(tasks, name="tasks")
console = Console(highlight=False)

_EXPECTED = (
    BadOptionError,
    NotInstalledError,
    InstallError,
    WorkspaceError,
    EvaluationError,
    ImageBuildError,
    DockerException,
    OSError,
)
"""What a user or a machine can be the cause of: told in a line, without a traceback."""


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except _EXPECTED as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from error


def _say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


@app.command("install")
def install_command(
    claw: Annotated[
        str, typer.Argument(help=f"Which claw: {', '.join(CLAWS)}; or all of them: all; or {FOLDER}.")
    ],
) -> None:
    """Install a claw's pinned runtime below `.claws/` (or CLAWBENCH_HOME); there already: says so.

    `all` goes on after a claw that can't be had, and ends with exit code 1 then. `swebench4` is no claw: it is the
    official harness before swebench 5, which judges rows of the older shape.
    """
    with _told():
        if claw != "all":
            install(claw, _say, default_home())
        elif install_all(_say, default_home()):
            raise typer.Exit(1)


@app.command()
def claws() -> None:
    """List the claws: version, where each was found, and how to get what is missing."""
    table = Table("claw", "version", "found by", "where, or how to get it", box=None, pad_edge=False)
    for name in CLAWS:
        try:
            runtime = adapter(name).runtime()
        except NotInstalledError as error:
            table.add_row(name, "-", "-", str(error))
        else:
            table.add_row(name, runtime.version, runtime.found_by, str(runtime.location))
    console.print(table)


@app.command("conformance-table")
def conformance_table(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs (artifacts/<run-id>); later ones count.")],
    to: Annotated[Path, typer.Option(help="The page to write.")] = ROOT / "docs" / "conformance.md",
) -> None:
    """Make docs/conformance.md from the results of `pytest -m conformance`."""
    with _told():
        found = {(cell.claw, cell.requirement): cell for run in runs for cell in load(run)}
        to.write_text(page(list(found.values())), encoding="utf-8")
    _say(f"wrote {to}")


@app.command("sweep")
def sweep_command() -> None:
    """Remove the containers of runs that are gone; every run does this when it starts."""
    with _told():
        removed = sweep(connect())
    _say("\n".join(removed) if removed else "nothing was left behind")


@tasks.command("check")
def check(
    ids: Annotated[list[str] | None, typer.Argument(help="Instances; all of the embedded set by default.")] = None,
) -> None:
    """Prove the embedded tasks: gold resolves, an empty patch does not, every leak is there and is stripped."""
    wanted = ids or embedded_ids()
    unknown = sorted(set(wanted) - set(embedded_ids()))
    if unknown:
        console.print(f"[red]error:[/red] not in the embedded set: {escape(', '.join(unknown))}")
        raise typer.Exit(2)
    with _told():
        results = list(_watched(check_tasks(connect(), wanted, home=default_home(), say=_say), _say))
    table = Table("instance", "gold", "empty", "leaks before", "after", "", box=None, pad_edge=False)
    for result in results:
        table.add_row(*result.cells(), "ok" if result.is_sound else "[red]BROKEN[/red]")
    console.print(table)
    if not all(result.is_sound for result in results):
        raise typer.Exit(1)


def _watched(results: Iterator[TaskCheck], say: Callable[[str], None]) -> Iterator[TaskCheck]:
    for result in results:
        for problem in result.problems:
            say(f"{result.instance_id}: {problem}")
        yield result
