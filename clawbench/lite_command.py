"""`clawbench lite select`: a small set of instances on which runs come out as they do on the full set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reports.comparison.contenders import Contender
    from reports.lite_selection import Calibration, Quality

app = typer.Typer(help="Small sets of instances that stand for the full set.", no_args_is_help=True)
_SIZES = (4, 6, 8, 10, 12, 15, 20)
"""Instances of each language group that `--sweep` tries."""


@app.callback()
def _lite() -> None:
    """Keeps `select` a subcommand although it is the only one."""


@app.command()
def select(
    runs: Annotated[
        list[str], typer.Argument(help="Finished runs of the full set; each claw of each run is a column.")
    ],
    *,
    per_group: Annotated[int, typer.Option(min=4, help="Instances of each language group.")] = 10,
    restarts: Annotated[int, typer.Option(min=1, help="Random starts of the search in each group.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same set.")] = 1,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Also show how good sets of other sizes would be.")
    ] = False,
    to: Annotated[Path | None, typer.Option(help="Write the ids to this file, for --instances.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")] = False,
    artifacts: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("artifacts"),
) -> None:
    """Select the instances that stand for the full set, by the paper's procedure, and show how well they do.

    Only instances with a verdict in every run are used.
    """
    from dataclasses import asdict

    from evaluation.lists import listed_instances
    from reports.comparison.contenders import contenders
    from reports.lite_selection import quality, validate
    from reports.lite_selection import select as selected

    columns = contenders(runs, artifacts)
    found, left_out = _calibration(columns)
    chosen = selected(found, per_group, restarts=restarts, seed=seed)
    published = [one.instance_id for one in listed_instances() if one.lite]
    known = [name for name in published if name in found.instances]
    qualities = {f"this set ({per_group} of each group)": quality(found, chosen)}
    if known:
        told = "the published Lite set" + (
            f" ({len(known)} of {len(published)} known)" if len(known) < len(published) else ""
        )
        qualities[told] = quality(found, known)
    for size in _SIZES if sweep else ():
        if size <= min(map(found.groups.count, set(found.groups))):
            qualities[f"{size} of each group"] = quality(
                found, selected(found, size, restarts=restarts, seed=seed)
            )
    if to is not None:
        head = (
            f"# clawbench lite select {' '.join(runs)} --per-group {per_group} --restarts {restarts} --seed {seed}"
        )
        to.write_text("\n".join([head, *chosen, ""]), encoding="utf-8")
    if as_json:
        facts = {
            "selection": chosen,
            "shared_with_published": sorted(set(chosen) & set(published)),
            "quality": {name: asdict(one) for name, one in qualities.items()},
            "columns": [asdict(one) for one in validate(found, chosen)],
            "left_out": left_out,
        }
        typer.echo(json.dumps(facts, indent=2))
        return
    _print(found, chosen, qualities)
    shared = len(set(chosen) & set(published))
    typer.echo(f"{len(chosen)} instances, {shared} of them in the published Lite set")
    if left_out:
        typer.echo(f"left out, because a run has no verdict on it: {', '.join(left_out)}")
    unknown = [name for name, costs in zip(found.columns, found.cost, strict=True) if not costs.sum() > 0]
    if unknown:
        typer.echo(f"selected without regard to cost, because their costs are unknown: {', '.join(unknown)}")
    typer.echo(f"the ids are in {to}" if to is not None else "\n".join(chosen))


def _calibration(columns: Sequence[Contender]) -> tuple[Calibration, list[str]]:
    """The results on all instances with a verdict in every column, and the other instances."""
    import numpy as np

    from evaluation.lists import by_id
    from reports.lite_selection import Calibration, SelectionError

    listed = by_id()
    every = {one.name: one.results for one in columns}
    names = sorted(set().union(*every.values()) & listed.keys())
    whole = [
        name for name in names if all(any(x is not None for x in rows.get(name, ())) for rows in every.values())
    ]
    if not whole:
        raise SelectionError("no instance has a verdict in every run")

    def share(samples: Sequence[bool | None]) -> float:
        known = [one for one in samples if one is not None]
        return sum(known) / len(known)

    costs = [[column.mean_of("dollars", name) for name in whole] for column in columns]
    nothing = [float("nan")] * len(whole)
    return Calibration(
        columns=tuple(every),
        instances=tuple(whole),
        groups=tuple(listed[name].language_group for name in whole),
        resolved=np.array([[share(rows[name]) for name in whole] for rows in every.values()]),
        cost=np.array([nothing if None in row else row for row in costs], dtype=float),
    ), [name for name in names if name not in whole]


def _print(found: Calibration, chosen: Sequence[str], qualities: Mapping[str, Quality]) -> None:
    from rich.console import Console
    from rich.table import Table

    from reports.lite_selection import validate

    console = Console(highlight=False)
    console.width = max(console.width, 120)  # a table that is folded can't be read
    table = Table(title="How well a set stands for the full set", title_justify="left", box=None, pad_edge=False)
    table.add_column("set")
    for heading in ("instances", "mean difference", "mean error", "largest error", "ranks kept", "cost"):
        table.add_column(heading, justify="right")
    for name, one in qualities.items():
        cells = (one.mean_difference, one.mean_error, one.max_error)
        ranks, cost = f"{one.ranks_kept} of {one.ranks}", _percent(one.cost_share)
        table.add_row(name, str(one.instances), *(f"{100 * cell:+.1f}" for cell in cells), ranks, cost)
    console.print(table)
    groups = sorted(set(found.groups))
    table = Table(title="Pass@1 by run; differences in points", title_justify="left", box=None, pad_edge=False)
    table.add_column("run", overflow="fold")
    for heading in ("full set", "this set", *groups, "cost"):
        table.add_column(heading, justify="right")
    for row in validate(found, chosen):
        by_group = [f"{100 * row.by_group[group]:+.1f}" for group in groups]
        table.add_row(row.column, _percent(row.full), _percent(row.selected), *by_group, _percent(row.cost_share))
    console.print(table)


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f}%"
