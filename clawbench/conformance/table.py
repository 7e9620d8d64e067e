"""The result: claws by requirements, in the terminal and as a page of the docs.

A run keeps its cells in `conformance.json`; a page may be made of several runs, later ones first.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adapters.registry import CLAWS

FILE = "conformance.json"

_HOW = """## How it is shown

- Every run is a case like the benchmark's, up to its patch: the same workspace, gateway, export and outcome. The
  model calls the claw's own shell tool with given commands, or fails in a given way.
- **Edits** are made to a repository with a file for each kind, and with files of its own under the names that the
  claw is known to leave. The patch is applied to the start tree, and modes and bytes are compared.
- **The prompt** is looked for in the first request that reached the gateway, as a whole. It ends with blanks; a
  claw that takes those off and nothing else has a limit.
- **Providers' failures** count as told apart where the case's ending names the failure that it was.
- **A call to a removed tool**: the model first calls a tool that there is not, then each one that the gateway took
  out (where it took out none, one that the claw has turned off). The claw's answers must be the same, but for the
  name.
- **Keys, names, paths**: a made-up key is in the environment that the suite runs in. It, the suite's folder, its
  Python, the folder of runtimes, each mount's place on the host and the host's name (if it has six characters or
  more; shorter ones are part of other words) are searched for in the container's files, the mounted runtime,
  the environments and command lines of its processes, noted while the claw is at work, and all artifacts.
  Not searched is what the kernel itself tells of a mount: `/proc/self/mountinfo` names the runtime's folder on the
  host.
- **No request leaves**: loopback is the container's only device, it has no route, and the kernel counts the
  packets for which it found none. The count is taken before and after three packets of the suite's own, so that a
  kernel that does not count is noticed. What the claw asked its gateway for beside chat is in the gateway's log.
- **Two cases at the same time** begin together, each with a word of its own in its prompt, in /tmp and in what its
  tool says. Neither word is in the other's requests, output, session or patch.
- **The runtime** is everything that is mounted: names, modes, links and contents, before the first run and at the
  end.
- **Budgets** of runs that must not end by themselves are 2.5 times what the claw took for a plain task, or
  15 s where that is more.
"""

PASSES, LIMIT, FAILS = "passes", "limit", "FAILS"


@dataclass(frozen=True)
class Cell:
    """One requirement of one claw."""

    claw: str
    version: str
    requirement: str
    """In words."""
    result: str
    """`passes`, `limit` (the claw itself can't) or `FAILS`."""
    evidence: str = ""
    """In one line."""


def keep(cells: Iterable[Cell], run: Path) -> None:
    """Write a run's cells down; those that an earlier command of the same run wrote stay."""
    path = run / FILE
    merged = {(cell.claw, cell.requirement): cell for cell in [*(load(run) if path.exists() else []), *cells]}
    path.write_text(json.dumps([asdict(cell) for cell in merged.values()], indent=2, ensure_ascii=False) + "\n")


def load(run: Path) -> list[Cell]:
    """A run's cells.

    Raises:
        OSError: it has none.
        ValueError: they can't be read.
    """
    try:
        return [Cell(**fields) for fields in json.loads((run / FILE).read_text())]
    except TypeError as error:
        raise ValueError(f"{run / FILE} has no cells of a conformance table: {error}") from error


def table_lines(cells: Sequence[Cell]) -> list[str]:
    """The table for a terminal, and below it every cell that does not just pass."""
    found, claws, requirements = _arranged(cells)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("requirement", *claws):
        table.add_column(heading)
    for requirement in requirements:
        results = (found[claw, requirement].result if (claw, requirement) in found else "-" for claw in claws)
        table.add_row(requirement, *results)
    stream = io.StringIO()
    Console(file=stream, width=200, color_system=None, highlight=False, markup=False).print(table)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    told = [f"{cell.claw}: {cell.requirement}: {cell.result}: {cell.evidence}" for cell in cells if _is_told(cell)]
    return [*lines, *told]


def page(cells: Sequence[Cell]) -> str:
    """The page of the docs, in Markdown."""
    found, claws, requirements = _arranged(cells)
    versions = {cell.claw: cell.version for cell in cells}
    lines = [
        "# Conformance",
        "",
        "Generated by `clawbench conformance-table`; don't edit it. The cells are made by",
        "`pytest -m conformance -k <claw>`: real cases with the scripted model, which cost nothing. `limit`: the",
        "claw itself can't do it; what shows that is below.",
        "",
        "| requirement | " + " | ".join(f"{claw} {versions[claw]}" for claw in claws) + " |",
        "| --- |" + " --- |" * len(claws),
    ]
    for requirement in requirements:
        results = (
            found[claw, requirement].result if (claw, requirement) in found else "not run" for claw in claws
        )
        lines.append(f"| {requirement} | " + " | ".join(results) + " |")
    for title, shown in (("Limits and failures", (LIMIT, FAILS)), ("What was seen where it passes", (PASSES,))):
        told = [cell for cell in cells if cell.evidence and cell.result in shown]
        if told:
            lines += ["", f"## {title}", ""]
        for requirement in requirements:
            lines += [
                f"- {cell.claw}: {requirement}: {_escaped(cell.evidence)}"
                for cell in sorted(told, key=lambda cell: claws.index(cell.claw))
                if cell.requirement == requirement
            ]
    return "\n".join([*lines, "", _HOW])


def _is_told(cell: Cell) -> bool:
    return cell.result != PASSES


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")


def _arranged(cells: Sequence[Cell]) -> tuple[dict[tuple[str, str], Cell], list[str], list[str]]:
    found = {(cell.claw, cell.requirement): cell for cell in cells}
    known = {name: number for number, name in enumerate(CLAWS)}
    claws = sorted({cell.claw for cell in cells}, key=lambda name: (known.get(name, len(known)), name))
    requirements = list(dict.fromkeys(cell.requirement for cell in cells))
    return found, claws, requirements
