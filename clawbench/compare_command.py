"""`clawbench compare` and `clawbench parts`: contenders of one run or several, paired by instance."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reports.comparison.comparison import Comparison

NOT_COMPARABLE = 2


class Format(StrEnum):
    """How the comparison is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Runs (an id or a folder), RUN:CLAW for one claw of a run, or a report.json of the official "
            "harness. The first is the baseline."
        ),
    ],
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="The factor under study, such as claw or model; repeatable. By default, the only one that differs."
        ),
    ] = None,
    allow_confounded: Annotated[
        bool,
        typer.Option(
            "--allow-confounded", help="Give differences although other factors differ; they are marked."
        ),
    ] = False,
    expect_same: Annotated[
        bool,
        typer.Option(
            "--expect-same", help="Two runs of the same manifest: list each case that ended differently."
        ),
    ] = False,
    fail_if_worse: Annotated[
        bool,
        typer.Option("--fail-if-worse", help="Exit code 1 if one is shown to resolve less than the first."),
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="How the comparison is printed.")] = Format.TABLE,
    artifacts: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("artifacts"),
) -> None:
    """Compare runs, or claws within a run, instance by instance: what differs, and what can be concluded.

    Exit code 0: compared; 1: `--expect-same` or `--fail-if-worse` failed; 2: nothing can be compared, because other
    factors than the one under study differ.
    """
    from reports.comparison.comparison import compare as compared
    from reports.comparison.contenders import CompareError, contenders
    from reports.comparison.manifest_differences import FACTORS, HARMLESS

    known = [factor for factor in FACTORS if factor != HARMLESS]
    if unknown := sorted(set(vary or ()) - set(known)):
        raise CompareError(f"--vary {', '.join(unknown)}: the factors are {', '.join(known)}")
    if expect_same:
        _expect_same(runs, artifacts)
        return
    found = compared(contenders(runs, artifacts), vary=vary or (), allow_confounded=allow_confounded)
    typer.echo(_written(found, output), nl=False)
    if not any(one.is_shown for one in found.pairs):
        typer.echo(
            "nothing can be compared: run the contenders with the same settings, name the factor under study with "
            "--vary, or see the differences with --allow-confounded",
            err=True,
        )
        raise typer.Exit(NOT_COMPARABLE)
    if fail_if_worse and any(one.is_worse and one.first == found.contenders[0].name for one in found.pairs):
        raise typer.Exit(1)


def parts(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs with --adapter-parts: ids or folders.")] = None,
    *,
    only_list: Annotated[
        bool, typer.Option("--list", help="List the values of --adapter-parts that have to be run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")] = False,
    artifacts: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("artifacts"),
) -> None:
    """Compute what each part of the adapter is worth: workspace preparation, prompt, export and cleaning.

    Needs one run for each combination of parts, with the same claws, instances and settings.
    """
    from rich.console import Console
    from rich.table import Table

    from reports.adapter_parts import CELLS, factorials, option_value, tables
    from reports.comparison.contenders import CompareError, contenders

    if only_list:
        typer.echo("\n".join(map(option_value, CELLS)))
        return
    if not runs:
        raise CompareError("name the runs, or see with --list what has to be run")
    found = factorials(contenders(runs, artifacts))
    if as_json:
        typer.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
        return
    console = Console(highlight=False, width=100)
    for one in found:
        for title, headings, rows in tables(one):
            table = Table(*headings, title=title, title_justify="left", box=None, pad_edge=False)
            for row in rows:
                table.add_row(*row)
            console.print(table)
        if one.left_out:
            console.print(
                f"without a verdict in some run, and left out: {', '.join(one.left_out)}", soft_wrap=True
            )


def _written(found: Comparison, output: Format) -> str:
    from rich.console import Console

    from reports.comparison import comparison_view as view

    if output is Format.TABLE:
        return view.as_text(found, max(Console().width, 100))
    if output is Format.MARKDOWN:
        return view.as_markdown(found)
    return view.as_json(found) + "\n" if output is Format.JSON else view.as_csv(found)


def _expect_same(runs: list[str], artifacts: Path) -> None:
    from reports.comparison.comparison import departures
    from reports.comparison.comparison_view import difference_line
    from reports.comparison.contenders import CompareError, contenders
    from reports.comparison.manifest_differences import HARMLESS, comparability

    if len(runs) != 2:
        raise CompareError("--expect-same takes two runs")
    first, second = (contenders([run], artifacts) for run in runs)
    differing = [
        f"{before.claw}: {difference_line(one)}"
        for before in first
        for after in second
        if before.claw == after.claw
        for one in comparability(before.facts, after.facts).differences
        if one.factor != HARMLESS
    ]
    if differing:
        typer.echo("\n".join(["the manifests differ, so the verdicts need not agree:", *differing]))
        raise typer.Exit(NOT_COMPARABLE)
    found = [f"{one.case}: {one.first} before, {one.second} now" for one in departures(first, second)]
    typer.echo("\n".join(found or [f"all {sum(len(one.outcomes) for one in first)} cases ended alike"]))
    if found:
        raise typer.Exit(1)
