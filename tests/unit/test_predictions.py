"""Predictions: derived from the cases' folders, valid at every moment, and the official harness takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.made_up import made_up_export
from swebench.harness.utils import get_predictions_from_file

from records.case_id import CaseId
from records.predictions import Refresher, own_file, write_predictions
from records.run_folder import RunDirectory

IDS = ("demo__confmerge-87", "demo__cronspan-118")


def export(run: RunDirectory, claw: str, instance_id: str, sample: int = 1, *, is_final: bool = True) -> None:
    ending = "finished" if is_final else "infrastructure"
    patch = f"diff of {claw} on {instance_id}, {sample}: ÿ\n"
    made_up_export(run.case(CaseId(claw, instance_id, sample)), patch, is_final=is_final, ending=ending)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "run")
    for claw in ("hermes", "nanobot"):
        for sample in (1, 2, 10):
            for instance_id in IDS:
                export(made, claw, instance_id, sample)
    write_predictions(made)
    return made


@pytest.mark.parametrize("name", ["predictions.jsonl", "predictions-s2.jsonl", "predictions-s10.jsonl"])
def test_the_official_harness_takes_each_file_of_a_claw_as_it_is(run: RunDirectory, name: str) -> None:
    path = run.path / "nanobot" / name
    sample = run.case(CaseId("nanobot", IDS[0], int(path.stem.partition("-s")[2] or 1)))
    assert own_file(sample) == path
    rows = get_predictions_from_file(str(path), "", "")
    assert [row["instance_id"] for row in rows] == list(IDS)
    assert [set(row) for row in rows] == [{"instance_id", "model_name_or_path", "model_patch"}] * 2
    assert rows[0]["model_patch"] == sample.patch()


def test_the_runs_own_file_has_a_row_for_each_case(run: RunDirectory) -> None:
    rows = [json.loads(line) for line in (run.path / "predictions.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * 3 * len(IDS)
    assert len({row["model_patch"] for row in rows}) == len(rows)


def test_a_case_that_was_forgotten_is_in_no_file(run: RunDirectory) -> None:
    for instance_id in IDS:
        run.case(CaseId("nanobot", instance_id, 2)).begin()
    run.case(CaseId("nanobot", IDS[0])).begin()
    write_predictions(run)
    assert (run.path / "nanobot" / "predictions-s2.jsonl").read_bytes() == b""
    assert len((run.path / "nanobot" / "predictions.jsonl").read_text().splitlines()) == 1
    assert len((run.path / "predictions.jsonl").read_text().splitlines()) == 2 * 3 * len(IDS) - 3


def test_what_is_not_the_claws_last_word_is_no_prediction(run: RunDirectory) -> None:
    export(run, "hermes", IDS[0], is_final=False)
    write_predictions(run)
    assert len((run.path / "hermes" / "predictions.jsonl").read_text().splitlines()) == 1


def test_where_one_can_not_be_read_all_stay_as_they_were(run: RunDirectory) -> None:
    before = {path: path.read_bytes() for path in run.path.rglob("predictions*.jsonl")}
    patch = run.case(CaseId("nanobot", IDS[1], 10)).path / "git.patch"
    patch.unlink()
    patch.mkdir()
    with pytest.raises(IsADirectoryError):
        write_predictions(run)
    assert {path: path.read_bytes() for path in run.path.rglob("predictions*.jsonl")} == before
    assert not list(run.path.rglob("*.half"))


def test_they_are_made_anew_seldom_enough_to_cost_at_most_a_twentieth(run: RunDirectory) -> None:
    """By a clock of the test's own, on which each look takes a second."""
    time, made = 0.0, 0

    def clock() -> float:
        nonlocal time
        time += 1.0
        return time

    refresher, path = Refresher(run, clock), run.path / "predictions.jsonl"
    while time < 1000:
        before = path.stat().st_ino
        run.journal.write("finished")
        refresher.case_ended()
        made += path.stat().st_ino != before
    assert 10 < made < 1000 / 20


def test_they_are_not_made_anew_where_nothing_has_happened(run: RunDirectory) -> None:
    refresher, path = Refresher(run), run.path / "predictions.jsonl"
    run.journal.write("finished")
    refresher.refresh()
    path.unlink()
    refresher.refresh()
    assert not path.exists()
    run.journal.write("finished")
    refresher.refresh()
    assert path.exists()
