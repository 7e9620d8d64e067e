"""The commands that look at runs and change nothing in them: `clawbench runs`, `status`, `verify` and `export`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from clawbench.export_command import export_run
from clawbench.runs import Listed, runs_in
from clawbench.status import Looker, RunStatus
from clawbench.status_view import view
from clawbench.verification import Verification, verify_run
from gateway.providers import ProviderConfigError
from records.plan import PlanError
from records.run import RunDirectory, RunError
from reports.submission import SPLITS, SubmissionError

EVERY = 2.0
"""Seconds between two looks of `status --watch`."""

console = Console(highlight=False)

Run = Annotated[str, typer.Argument(help="The run: its id, or its folder.")]
Artifacts = Annotated[Path, typer.Option(help="The folder of all runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")]


def add_to(app: typer.Typer) -> None:
    """Make the commands known."""
    app.command("runs")(runs)
    app.command("status")(status)
    app.command("verify")(verify)
    app.command("export")(export)


@contextmanager
def _told() -> Iterator[None]:
    if isinstance(sys.stdout, TextIOWrapper):  # names of files may be no text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    except (RunError, PlanError, SubmissionError, ProviderConfigError, OSError) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from error


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))


def runs(artifacts: Artifacts = Path("artifacts"), as_json: AsJson = False) -> None:
    """List the runs: when begun, claws, model, how far they are, what they cost, and whether they are at work."""
    with _told():
        found = list(runs_in(artifacts))
    if as_json:
        _print_json([_row(one) for one in found])
        return
    if not found:
        console.print(f"no run is in {artifacts}", markup=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)  # to be copied into the next command
    for heading, least in (("begun", 10), ("claws", 8), ("model", 10)):
        table.add_column(heading, overflow="fold", min_width=least)
    for heading in ("done", "resolved", "errors", "spent", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for one in found:
        table.add_row(*map(Text, _cells(one)))
    Console(highlight=False, width=max(console.width, 102 + max(len(one.run.run_id) for one in found))).print(
        table
    )


def _row(one: Listed) -> dict[str, object]:
    if one.status is None:
        return {"run_id": one.run.run_id, "trouble": one.trouble, "size": one.size}
    return {**one.status.facts(), "size": one.size}


def _cells(one: Listed) -> list[str]:
    status = one.status
    if status is None:
        return [one.run.run_id, "", "", one.trouble, "", "", "", "", _size(one.size), "unreadable"]
    return [
        status.run_id,
        status.created[:16].replace("T", " "),
        ", ".join(status.claws),
        status.model,
        f"{status.done:,}/{status.planned:,}",
        f"{status.resolved:,}",
        f"{status.errors:,}",
        "-" if status.spent is None else f"${status.spent:,.2f}",
        _size(one.size),
        status.state,
    ]


def _size(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:,.0f} {unit}"
        size //= 1000
    return f"{size:,.0f} GB"


def status(
    run: Run,
    artifacts: Artifacts = Path("artifacts"),
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until the run is over.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how a run stands: done, at work, outcomes, spent, rate, time left, errors. It may run elsewhere."""
    with _told():
        looker = Looker(RunDirectory.found(run, artifacts))
        found = looker.look()
        if watch and not as_json:
            found = _watch(looker, found)
    if as_json:
        _print_json(found.facts())
    elif not watch:
        console.print(view(found))


def _watch(looker: Looker, found: RunStatus) -> RunStatus:
    # at Ctrl-C the user has seen enough; the run goes on
    with suppress(KeyboardInterrupt), Live(view(found), console=console, auto_refresh=False) as live:
        while found.state == "running":
            time.sleep(EVERY)
            found = looker.look()
            live.update(view(found), refresh=True)
    return found


def verify(run: Run, artifacts: Artifacts = Path("artifacts"), as_json: AsJson = False) -> None:
    """Check every file of a run against its manifest and its journal.

    Ends with 0 where all agrees (cases may be missing, which it says), with 1 where something does not, and with 2
    where there is no run to check. Each fault is a line that says what to do.
    """
    with _told():
        found = verify_run(RunDirectory.found(run, artifacts))
    if as_json:
        _print_json({**asdict(found), "is_sound": found.is_sound})
    else:
        _show(found)
    if not found.is_sound:
        raise typer.Exit(1)


def _show(found: Verification) -> None:
    for fault in found.faults:
        console.print(f"[red]FAULT[/red] {escape(str(fault))}", soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for line in found.conclusion():
        console.print(line, markup=False, soft_wrap=True)


def export(
    run: Run,
    *,
    to: Annotated[Path, typer.Option(help="The folder that gets one new folder for each claw.")],
    claw: Annotated[list[str] | None, typer.Option(help="Only this claw's; may be given several times.")] = None,
    split: Annotated[
        str | None, typer.Option(help=f"Where the run has instances of several: {', '.join(SPLITS)}.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Which of several samples of each instance.")] = 1,
    name: Annotated[
        str | None, typer.Option(help="Of the new folder (default: <date>_<claw>_<model>), where it is one.")
    ] = None,
    subset: Annotated[
        bool,
        typer.Option(
            "--subset", help="Let instances of the split be missing that were not asked for, and say so."
        ),
    ] = False,
    artifacts: Artifacts = Path("artifacts"),
) -> None:
    """Write a finished run as github.com/SWE-bench/experiments asks for a submission.

    A run that is not complete is refused, and everything that it lacks is told: cases without a verdict, such that
    ended by an infrastructure error, files that are not as they were, instances of the split that were never asked
    for.
    """
    with _told():
        found = RunDirectory.found(run, artifacts)
        folders = export_run(found, to, claws=claw or [], split=split, sample=sample, name=name, subset=subset)
    for folder in folders:
        line = f"wrote {folder}; what only you can say is marked TODO in its metadata.yaml and README.md"
        console.print(line, markup=False, soft_wrap=True)
