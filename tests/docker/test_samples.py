"""`--samples`: independent cases of each claw and instance, added to under one run id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_run import fresh_id, run_bench
from swebench.harness.utils import get_predictions_from_file

from adapters.registry import installed
from clawbench.pytest_plugin.selection import case_of
from evaluation.lists import ListedInstance, listed_instances
from records.case_id import CaseId

ONE = ("-k", "nanobot and cronspan", "--model=scripted:oracle")
FIRST = "demo__cronspan-118"


@given(st.sampled_from(listed_instances()), st.integers(1, 1000))
def test_a_case_is_read_from_its_id_and_its_folder(listed: ListedInstance, sample: int) -> None:
    assert CaseId.parse(str(CaseId("nanobot", listed.instance_id, sample))) == CaseId(
        "nanobot", listed.instance_id, sample
    )


@pytest.mark.parametrize(
    "word", ["nanobot-no__such-1", "nanobot", "", "nanobot-demo__cronspan-118-s1", "nanobot-s2"]
)
def test_what_names_no_case_is_none(word: str) -> None:
    assert case_of(f"tests_bench/test_resolved.py::test_resolved[{word}]") is None


@pytest.mark.parametrize("number", ["0", "-1", "1001", "two", "1.5", ""])
def test_a_number_of_samples_that_makes_no_sense_is_refused(tmp_path: Path, number: str) -> None:
    run = run_bench(tmp_path, "refused", *ONE, f"--samples={number}", "--collect-only")
    assert run.exit_code == 4
    assert "is not a number from 1 to 1000" in run.output
    assert not run.folder.exists()


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_samples_are_cases_of_their_own_and_can_be_added_to(tmp_path: Path) -> None:
    run_id = fresh_id("samples")
    one = run_bench(tmp_path, run_id, *ONE)
    assert one.counts == {"passed": 1}, one.output
    before = (one.case_folder(FIRST) / "metadata.json").read_bytes()

    three = run_bench(tmp_path, run_id, *ONE, "--samples=3")
    assert three.counts == {"passed": 3}, three.output
    assert (three.case_folder(FIRST) / "metadata.json").read_bytes() == before, "what was there stays as it is"
    names = [FIRST, f"{FIRST}-s2", f"{FIRST}-s3"]
    rows = [json.loads((three.case_folder(name) / "metadata.json").read_text()) for name in names]
    assert [(row["instance_id"], row["sample"], row["outcome"]) for row in rows] == [
        (FIRST, sample, "resolved") for sample in (1, 2, 3)
    ]
    requests = [(three.case_folder(name) / "requests.jsonl").read_text() for name in names]
    assert all(requests), "each asked the model itself"
    assert set(three.junit()) == {f"test_resolved[nanobot-{name}]" for name in names}

    state = [json.loads(line) for line in (three.folder / "state.jsonl").read_text().splitlines()]
    assert [row["now"]["samples"] for row in state if row["event"] == "limits"] == [3]
    assert sorted(row["sample"] for row in state if row["event"] == "finished") == [1, 2, 3]

    assert len(three.predictions()) == 3
    for name in ("predictions", "predictions-s2", "predictions-s3"):
        official = get_predictions_from_file(str(three.folder / "nanobot" / f"{name}.jsonl"), "", "")
        assert [row["instance_id"] for row in official] == [FIRST], "one prediction per instance, as it asks"
