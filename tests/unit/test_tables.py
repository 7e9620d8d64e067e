"""The tables of `clawbench report --format`: the same values in every format, and no text that does harm."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from support.made_up import made_up_case, made_up_run
from typer.testing import CliRunner

from clawbench.cli import app
from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.run_folder import RunDirectory

HOSTILE = '=HYPERLINK("x")|<b>\\% \n& $_#{}~^'
COST = {"priced": Decimal("0.25"), "told": None, "unpriced": 0, "held": Decimal("0.25")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    made = made_up_run(RunDirectory.named(tmp_path_factory.mktemp("tables"), "one"))
    made_up_case(made, CaseId("nanobot", "redis__redis-11734"), cost=COST, turns=3)
    made_up_case(made, CaseId("nanobot", "axios__axios-4731"), Outcome.UNRESOLVED, cost=COST, detail=HOSTILE)
    return made


def report(run: RunDirectory, *words: str) -> bytes:
    done = CliRunner().invoke(app, ["report", str(run.path), *words])
    assert done.exit_code == 0, done.output
    return done.stdout_bytes


def rows(run: RunDirectory, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(report(run, "--format=json", f"--rows={kind}"))
    return found


def test_a_row_for_each_claw(run: RunDirectory) -> None:
    (row,) = rows(run, "claws")
    assert (row["claw"], row["pass_at_1"], row["cases"], row["resolved"]) == ("nanobot", 0.5, 2, 1)
    assert (row["dollars"], row["dollars_per_resolved"], row["agent_seconds"]) == (0.5, 0.5, 120)
    assert row["manifest"] == f"sha256:{sha256(run.manifest_path.read_bytes()).hexdigest()}"


def test_a_row_for_each_case(run: RunDirectory) -> None:
    axios, redis = rows(run, "cases")
    assert (axios["instance_id"], axios["outcome"], axios["resolved"]) == (
        "axios__axios-4731",
        "unresolved",
        False,
    )
    assert (redis["turns"], redis["dollars"], redis["input_tokens"], redis["evaluation_seconds"]) == (
        3,
        0.25,
        10,
        None,
    )
    folder = run.case(CaseId("nanobot", "redis__redis-11734")).path
    assert redis["manifest"] == f"sha256:{sha256((folder / 'manifest.json').read_bytes()).hexdigest()}"


@pytest.mark.parametrize("kind", ["claws", "cases"])
def test_every_format_has_the_same_values(run: RunDirectory, kind: str, tmp_path: Path) -> None:
    wanted = rows(run, kind)
    report(run, "--format=parquet", f"--rows={kind}", f"--to={tmp_path / 'a.parquet'}")
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist() == wanted
    found = list(csv.DictReader(io.StringIO(report(run, "--format=csv", f"--rows={kind}").decode())))
    for told, row in zip(found, wanted, strict=True):
        assert list(told) == list(row)
        for name, value in row.items():
            assert told[name].removeprefix("'") == ("" if value is None else str(value))


def test_texts_of_claws_do_no_harm(run: RunDirectory) -> None:
    table = report(run, "--format=csv", "--rows=cases").decode()
    assert "\"'=HYPERLINK(" in table
    markdown = report(run, "--format=markdown", "--rows=cases").decode()
    assert len(markdown.splitlines()) == 4
    assert "\\|&lt;b>" in markdown
    latex = report(run, "--format=latex", "--rows=cases").decode()
    assert r"|<b>\textbackslash{}\% \& \$\_\#\{\}\textasciitilde{}\textasciicircum{}" in latex
    assert latex.count("\\\\\n") == 3
