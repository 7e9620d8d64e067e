"""The commands that only read runs: `clawbench runs`, `status`, `verify` and `export`."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from records.run_folder import RunDirectory
    from records.status import RunStatus, StatusReader
    from reports.run_list import Listed

EVERY = 2.0
"""Seconds between two updates of `status --watch`."""

console = Console(highlight=False)

Run = Annotated[str, typer.Argument(help="The run: its id, or its folder.")]
Artifacts = Annotated[Path, typer.Option(help="The folder of all runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (runs, status, verify, regrade, report, export):
        app.command(command.__name__)(command)


def _found(run: str, artifacts: Path) -> RunDirectory:
    from records.run_folder import RunDirectory

    _show_any_name()
    return RunDirectory.found(run, artifacts)


def _show_any_name() -> None:
    """Names of files need not be text: show those that are not with escapes."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))


def runs(artifacts: Artifacts = Path("artifacts"), as_json: AsJson = False) -> None:
    """List the runs: start, claws, model, progress, results, cost, and whether each is running."""
    from reports.run_list import runs_in

    _show_any_name()
    found = list(runs_in(artifacts))
    if as_json:
        _print_json([_row(one) for one in found])
        return
    if not found:
        console.print(f"no run is in {artifacts}", markup=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)  # must be shown whole, to be copied into the next command
    for heading, least in (("begun", 10), ("claws", 8), ("model", 10)):
        table.add_column(heading, overflow="fold", min_width=least)
    for heading in ("done", "resolved", "errors", "spent", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for one in found:
        table.add_row(*map(Text, _cells(one)))
    width = max(console.width, 102 + max(len(one.run.run_id) for one in found))
    Console(highlight=False, width=width).print(table)


def _row(one: Listed) -> dict[str, object]:
    if one.status is None:
        return {"run_id": one.run.run_id, "trouble": one.trouble, "size": one.size}
    return {**one.status.facts(), "size": one.size}


def _cells(one: Listed) -> list[str]:
    from clawbench.run.disk import shown

    status, size = one.status, shown(one.size)
    if status is None:
        return [one.run.run_id, "", "", one.trouble, "", "", "", "", size, "unreadable"]
    return [
        status.run_id,
        status.created[:16].replace("T", " "),
        ", ".join(status.claws),
        status.model,
        f"{status.done:,}/{status.planned:,}",
        f"{status.resolved:,}",
        f"{status.errors:,}",
        "-" if status.spent is None else f"${status.spent:,.2f}",
        size,
        status.state,
    ]


def status(
    run: Run,
    artifacts: Artifacts = Path("artifacts"),
    watch: Annotated[bool, typer.Option("--watch", help="Keep updating until the run is over.")] = False,
    cases: Annotated[bool, typer.Option("--cases", help="List every case with its outcome.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run's progress: done, running, outcomes, cost, rate, time left, errors. It may run elsewhere."""
    from records.status import StatusReader
    from reports.status_view import view

    directory = _found(run, artifacts)
    if cases:
        _print_cases(directory, as_json=as_json)
        return
    reader = StatusReader(directory)
    found = reader.look()
    if watch and not as_json:
        found = _watch(reader, found)
    if as_json:
        _print_json(found.facts())
    elif not watch:
        console.print(view(found))


def _print_cases(run: RunDirectory, *, as_json: bool) -> None:
    """One line for each planned case, in a form that grep and cut can read; or one JSON document."""
    records = {str(case): run.case(case).metadata() for case in run.plan.cases()}
    if as_json:
        _print_json({name: record.facts() if record is not None else None for name, record in records.items()})
        return
    for name, record in records.items():
        told = ("-", "") if record is None else (record.outcome, " ".join(record.detail.split()))
        typer.echo("\t".join((name, *told)).rstrip())


def _watch(reader: StatusReader, found: RunStatus) -> RunStatus:
    from rich.live import Live

    from reports.status_view import view

    # Ctrl-C ends the display, not the run
    with suppress(KeyboardInterrupt), Live(view(found), console=console, auto_refresh=False) as live:
        while found.state == "running":
            time.sleep(EVERY)
            found = reader.look()
            live.update(view(found), refresh=True)
    return found


def verify(run: Run, artifacts: Artifacts = Path("artifacts"), as_json: AsJson = False) -> None:
    """Check every file of a run against its manifest and its journal.

    Exit code 0: everything agrees (missing cases are reported); 1: something does not; 2: there is no run to
    check. Each fault is a line that says what to do.
    """
    from dataclasses import asdict

    from clawbench.run.usage import use_in
    from records.verification import verify_run

    found = verify_run(_found(run, artifacts), use_in)
    if as_json:
        _print_json({**asdict(found), "is_sound": found.is_sound})
    else:
        for fault in found.faults:
            console.print(f"[red]FAULT[/red] {escape(str(fault))}", soft_wrap=True)
        for line in (*(f"note: {note}" for note in found.notes), *found.conclusion()):
            console.print(line, markup=False, soft_wrap=True)
    if not found.is_sound:
        raise typer.Exit(1)


def regrade(
    run: Run,
    dataset: Annotated[
        str | None, typer.Option(help="The rows, if they are not where the run recorded them: as for pytest.")
    ] = None,
    artifacts: Artifacts = Path("artifacts"),
) -> None:
    """Grade a run again from its saved test logs, with the installed official harness and without a container.

    For when a parser of the harness has changed. Changes nothing. Exit code 0: all verdicts are the same; 1: each that
    differs is listed.
    """
    from clawbench.regrade import regrade as graded

    found = list(graded(_found(run, artifacts), dataset))
    differing = [one for one in found if one.before is not one.now]
    for one in differing:
        console.print(f"{one.case}: {one.before} before, {one.now} now", markup=False, soft_wrap=True)
    same = len(found) - len(differing)
    console.print(f"{same} of {len(found)} verdicts from test logs are the same", markup=False, soft_wrap=True)
    if differing:
        raise typer.Exit(1)


class ReportFormat(StrEnum):
    """The form of a report."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    LATEX = "latex"
    JSON = "json"
    PARQUET = "parquet"


class ReportRows(StrEnum):
    """What a row of a table stands for."""

    CLAWS = "claws"
    CASES = "cases"


def report(
    runs: Annotated[list[str], typer.Argument(help="Runs: ids or folders.")],
    *,
    form: Annotated[
        ReportFormat, typer.Option("--format", help="A page, or a table for papers and other programs.")
    ] = ReportFormat.HTML,
    rows: Annotated[ReportRows, typer.Option(help="What a row of a table stands for.")] = ReportRows.CLAWS,
    to: Annotated[
        Path | None,
        typer.Option(
            help="The file. Default: report.html, in the folder of the run if it is one, else here. Tables are printed."
        ),
    ] = None,
    artifacts: Artifacts = Path("artifacts"),
) -> None:
    """Write the results of one run or several: a page with leaderboards, figures and every case, or a table.

    The page is one file, which opens without a network. The end of each run writes its own. Tables have the digests of
    the manifests, and an empty cell or null where a value is unknown.
    """
    found = [_found(run, artifacts) for run in runs]
    if form is ReportFormat.HTML:
        from reports.page.page import PAGE, write_page

        target = to or (found[0].path / PAGE if len(found) == 1 else Path(PAGE))
        write_page(found, target)
    else:
        from reports.tables import Rows, TableFormat, table_of, written

        data = written(table_of(found, Rows(rows)), TableFormat(form))
        if to is None:
            sys.stdout.buffer.write(data)
            return
        target = to
        target.write_bytes(data)
    console.print(f"wrote {target}", markup=False, soft_wrap=True)


def export(
    run: Run,
    *,
    to: Annotated[Path, typer.Option(help="The folder in which a new folder is made for each claw.")],
    claw: Annotated[list[str] | None, typer.Option(help="Only this claw; may be given several times.")] = None,
    split: Annotated[
        str | None,
        typer.Option(help="verified, multilingual or demo; needed if the run has instances of several."),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Which of several samples of each instance.")] = 1,
    name: Annotated[
        str | None, typer.Option(help="The new folder's name if it is one (default: <date>_<claw>_<model>).")
    ] = None,
    subset: Annotated[
        bool,
        typer.Option("--subset", help="Allow, and state, that instances of the split were not part of the run."),
    ] = False,
    artifacts: Artifacts = Path("artifacts"),
) -> None:
    """Write a finished run in the form that github.com/SWE-bench/experiments asks of a submission.

    An incomplete run is refused with everything that it lacks: cases without a verdict or with an infrastructure
    error, files that have changed, instances of the split that were not part of the run.
    """
    from clawbench.export_command import export_run

    found = _found(run, artifacts)
    for folder in export_run(found, to, claws=claw or [], split=split, sample=sample, name=name, subset=subset):
        line = f"wrote {folder}; what only you can know is marked TODO in its metadata.yaml and README.md"
        console.print(line, markup=False, soft_wrap=True)
