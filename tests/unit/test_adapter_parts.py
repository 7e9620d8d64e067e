"""The worth of the adapter's parts: computed by hand, and what `--adapter-parts` and `clawbench parts` refuse."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.made_up import made_up_case, made_up_run
from support.user_commands import run
from typer.testing import CliRunner, Result

from clawbench.cli import app
from clawbench.pytest_plugin.options import adapter_parts
from evaluation.collection import AdapterPart
from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.run_folder import RunDirectory
from reports.adapter_parts import CELLS, Parts, option_value, worths

ALL = frozenset(AdapterPart)
NEEDS: dict[str, Parts | None] = {
    "always": frozenset(),
    "export": frozenset({AdapterPart.EXPORT}),
    "export-and-prompt": frozenset({AdapterPart.EXPORT, AdapterPart.PROMPT}),
    "never": None,
}
"""The parts that each instance needs to be resolved."""


def made(path: Path, parts: Parts, instances: Iterable[str] = NEEDS, **more: object) -> Path:
    """A run with some parts, whose instances are resolved if the parts that they need are on."""
    found = made_up_run(RunDirectory(path), adapter_parts=sorted(parts), **more)
    for instance in instances:
        needed = NEEDS[instance]
        is_resolved = needed is not None and needed <= parts
        made_up_case(found, CaseId("nanobot", instance), Outcome.RESOLVED if is_resolved else Outcome.UNRESOLVED)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run for each of `CELLS`."""
    folder = tmp_path_factory.mktemp("factorial")
    return [made(folder / option_value(parts).replace(",", "-"), parts) for parts in CELLS]


def asked(runs: Iterable[Path], *words: str) -> Result:
    return CliRunner().invoke(app, ["parts", *map(str, runs), *words])


def refused(*runs: Path) -> str:
    done = asked(runs)
    assert done.exit_code == 2, done.output
    return " ".join(done.output.split())


def test_the_worth_of_each_part_by_hand(runs: list[Path]) -> None:
    """Export is worth one instance and half of the one that needs the prompt as well; the prompt the other half."""
    (found,) = json.loads(asked(runs, "--json").output)
    rows = {one["part"]: (one["alone"], one["last"], one["worth"]) for one in found["worths"]}
    assert rows == {
        "preparation": (0, 0, 0),
        "prompt": (0, 0.25, pytest.approx(0.125)),
        "export": (0.25, 0.5, pytest.approx(0.375)),
        "cleaning": (0, 0, 0),
    }
    assert [cell["resolved"] for cell in found["cells"] if not cell["parts"]] == [0.25]
    assert (sorted(NEEDS), []) == (found["instances"], found["left_out"])
    told = asked(runs).output
    assert "4 instances" in told
    assert "+37.5" in told


@settings(max_examples=10)
@given(st.lists(st.dictionaries(st.sampled_from(CELLS), st.sampled_from([0, 0.5, 1])), min_size=1, max_size=4))
def test_the_worths_sum_up_to_the_whole_difference(instances: list[dict[Parts, float]]) -> None:
    cells = {parts: {str(number): one.get(parts, 0.0) for number, one in enumerate(instances)} for parts in CELLS}
    total = sum(cells[ALL][name] - cells[frozenset()][name] for name in cells[ALL]) / len(instances)
    assert sum(one.worth for one in worths(cells)) == pytest.approx(total, abs=1e-6)


def test_without_an_export_there_is_nothing_to_clean() -> None:
    assert len(CELLS) == 12
    assert [adapter_parts(option_value(parts)) for parts in CELLS] == [
        tuple(part for part in AdapterPart if part in parts) for parts in CELLS
    ]
    with pytest.raises(argparse.ArgumentTypeError, match="cleaning needs export"):
        adapter_parts("prompt,cleaning")
    with pytest.raises(
        argparse.ArgumentTypeError, match="the parts are preparation, prompt, export, cleaning, or none"
    ):
        adapter_parts("exports")


def test_runs_that_are_no_factorial_are_refused(tmp_path: Path, runs: list[Path]) -> None:
    assert "1 of 12 runs are missing: --adapter-parts=none" in refused(*runs[1:])
    other = made(tmp_path / "other", frozenset(), ["always"], max_turns=7)
    assert "differ in more than their parts: budget" in refused(*runs[1:], other)
    assert "none and other have the same parts" in refused(*runs, other)
    made_up_case(made_up_run(RunDirectory(tmp_path / "usual")), CaseId("nanobot", "always"))
    assert "usual is not a run with --adapter-parts" in refused(*runs[1:], tmp_path / "usual")


def test_an_instance_without_a_verdict_is_named_and_left_out(tmp_path: Path, runs: list[Path]) -> None:
    fewer = made(tmp_path / "fewer", frozenset(), [name for name in NEEDS if name != "never"])
    told = asked([fewer, *runs[1:]])
    assert told.exit_code == 0, told.output
    assert "left out: never" in told.output
    assert "3 instances" in told.output


def test_the_parts_say_how_the_patch_is_collected() -> None:
    done = run(["pytest", "-k", "nanobot", "--adapter-parts=none", "--collect=paired"])
    assert done.returncode == 4
    assert "--collect paired: not with --adapter-parts" in done.stdout
