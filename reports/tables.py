"""The results of runs as tables for papers and other programs: one row for each case, or one for each claw."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from evaluation.outcomes import Outcome
from records.case_folder import MANIFEST
from records.case_id import CaseId
from records.models import CaseRecord, Tokens
from records.run_folder import RunDirectory
from reports.numbers import Numbers, costs_of, numbers_of

Row = dict[str, Any]


class Rows(StrEnum):
    """What a row stands for."""

    CLAWS = "claws"
    CASES = "cases"


class TableFormat(StrEnum):
    """How a table is written."""

    MARKDOWN = "markdown"
    CSV = "csv"
    LATEX = "latex"
    JSON = "json"
    PARQUET = "parquet"


def table_of(runs: Sequence[RunDirectory], rows: Rows) -> list[Row]:
    """The rows of a table, all with the same columns; an unknown value is None, never 0.

    Args:
        runs: the runs.
        rows: what a row stands for.

    Raises:
        RunError: a record can't be understood.
        OSError: a file can't be read.
    """
    return [
        row
        for run in runs
        for numbers in numbers_of(run)
        for row in ([_of_claw(run, numbers)] if rows is Rows.CLAWS else _of_cases(run, numbers))
    ]


def _digest(path: Path) -> str | None:
    return f"sha256:{sha256(path.read_bytes()).hexdigest()}" if path.is_file() else None


def _of_claw(run: RunDirectory, numbers: Numbers) -> Row:
    rate, cost = numbers.pass_at_1, numbers.cost_usd
    cases = numbers.cases
    resolved = numbers.outcomes[Outcome.RESOLVED]
    dollars = cost.priced if cost is not None else None
    agent_seconds = [case.seconds["agent"] for case in cases if "agent" in case.seconds]
    return {
        "run": run.run_id,
        "claw": numbers.agent_label,
        "model": run.manifest().settings.model,
        "pass_at_1": rate.value if rate is not None else None,
        "low_95": rate.low if rate is not None else None,
        "high_95": rate.high if rate is not None else None,
        "at_least": numbers.pass_at_1_at_least,
        "instances": rate.instances if rate is not None else 0,
        "samples": numbers.samples,
        "cases": len(cases),
        "without_outcome": len(numbers.without_outcome),
        **{str(outcome): count for outcome, count in numbers.outcomes.items()},
        "dollars": dollars,
        "dollars_per_resolved": dollars / resolved if dollars is not None and resolved else None,
        "requests": numbers.requests,
        "turns": numbers.turns,
        "cache_hit": numbers.cache_hit,
        **{f"{name}_tokens": numbers.tokens.get(name) for name in Tokens.model_fields},
        "agent_seconds": sum(agent_seconds) if len(agent_seconds) == len(cases) else None,
        "manifest": _digest(run.manifest_path),
    }


def _of_cases(run: RunDirectory, numbers: Numbers) -> Iterator[Row]:
    model, digest = run.manifest().settings.model, _digest(run.manifest_path)
    for case in numbers.cases:
        yield {"run": run.run_id, "model": model, **_of_case(run, numbers.claw, case), "run_manifest": digest}


def _of_case(run: RunDirectory, claw: str, case: CaseRecord) -> Row:
    costs = costs_of([case])
    folder = run.case(CaseId(claw, case.instance_id, case.sample)).path
    is_whole = case.tokens is not None and not case.unknown_usage
    return {
        "claw": case.agent_label,
        "instance_id": case.instance_id,
        "sample": case.sample,
        "language_group": case.language_group,
        "outcome": str(case.outcome),
        "counts": case.policy.counts,
        "resolved": case.policy.passes,
        "ending": str(case.ending) if case.ending is not None else None,
        "failing_tests": len(case.failing_tests),
        "patch_bytes": case.patch_bytes,
        "patch_sha256": case.patch_sha256 or None,
        "requests": case.requests,
        "turns": case.turns,
        **{f"{name}_tokens": getattr(case.tokens, name) if is_whole else None for name in Tokens.model_fields},
        "dollars": float(costs[0].priced)
        if costs and costs[0].priced is not None and not costs[0].unpriced
        else None,
        "agent_seconds": case.seconds.get("agent"),
        "evaluation_seconds": case.seconds.get("evaluation"),
        "finished": case.finished,
        "detail": case.detail,
        "manifest": _digest(folder / MANIFEST),
    }


def written(rows: Sequence[Row], form: TableFormat) -> bytes:
    """A table in a format; CSV, Markdown and LaTeX have a heading, and an empty cell where a value is unknown."""
    return _WRITERS[form](rows)


def _as_json(rows: Sequence[Row]) -> bytes:
    return json.dumps(list(rows), indent=2).encode() + b"\n"


def _as_parquet(rows: Sequence[Row]) -> bytes:
    import pyarrow  # noqa: PLC0415 - slow to import, and only this format needs it
    from pyarrow import parquet  # noqa: PLC0415

    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def _as_csv(rows: Sequence[Row]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows([_no_formula(value) for value in row.values()] for row in rows)
    return stream.getvalue().encode()


def _no_formula(value: object) -> object:
    """A text that a spreadsheet does not take for a formula; texts of claws are in the table."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _as_markdown(rows: Sequence[Row]) -> bytes:
    def line(cells: Sequence[object]) -> str:
        return (
            f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|').replace('<', '&lt;') for cell in cells)} |\n"
        )

    heads = list(rows[0]) if rows else []
    body = "".join(line(list(row.values())) for row in rows)
    return (line(heads) + "| --- " * len(heads) + "|\n" + body).encode()


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_"},
}


def _as_latex(rows: Sequence[Row]) -> bytes:
    """A `tabular` that needs no package; numbers are on the right."""

    def line(cells: Sequence[object]) -> str:
        told = ("".join(_LATEX.get(letter, letter) for letter in _plain(cell)) for cell in cells)
        return f"{' & '.join(told)} \\\\\n"

    heads = list(rows[0]) if rows else []
    is_number = [any(isinstance(row[name], int | float) for row in rows) for name in heads]
    columns = "".join("r" if number else "l" for number in is_number)
    body = "".join(line(list(row.values())) for row in rows)
    return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{line(heads)}\\hline\n{body}\\hline\n\\end{{tabular}}\n".encode()


def _plain(value: object) -> str:
    """A cell in one line."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())


_WRITERS: dict[TableFormat, Callable[[Sequence[Row]], bytes]] = {
    TableFormat.MARKDOWN: _as_markdown,
    TableFormat.CSV: _as_csv,
    TableFormat.LATEX: _as_latex,
    TableFormat.JSON: _as_json,
    TableFormat.PARQUET: _as_parquet,
}
