"""The plan of a run: the union of what its commands asked for, whole at every moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from records.case_id import CaseId
from records.run_folder import RunDirectory, RunError

ONE = CaseId("nanobot", "demo__cronspan-118")
OTHER = CaseId("hermes", "demo__cronspan-118")
AGAIN = CaseId("nanobot", "demo__cronspan-118", 2)


def test_it_is_the_union_of_what_was_asked_for(tmp_path: Path) -> None:
    plan = RunDirectory(tmp_path).plan
    assert plan.cases() == []
    assert plan.add([ONE]) == 1
    assert plan.add([AGAIN, OTHER, ONE]) == 2
    assert RunDirectory(tmp_path).plan.cases() == [OTHER, ONE, AGAIN]


def test_asking_for_the_same_again_writes_nothing(tmp_path: Path) -> None:
    plan = RunDirectory(tmp_path).plan
    plan.add([ONE, OTHER])
    before = plan.path.stat().st_ino
    assert plan.add([OTHER]) == 0
    assert plan.path.stat().st_ino == before


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"format": 1, "planned": [{"claw": "nanobot"}]}', '{"format": 1, "planned": [], "more": 1}'],
)
def test_what_is_no_plan_is_told_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(f"{text}\n")
    with pytest.raises(RunError, match=r"plan\.json is (not a valid record|incomplete).*restore it from a copy"):
        RunDirectory(tmp_path).plan.add([ONE])
    assert path.read_text() == f"{text}\n"


def test_the_file_can_be_read_by_others(tmp_path: Path) -> None:
    plan = RunDirectory(tmp_path).plan
    plan.add([ONE, AGAIN])
    assert json.loads(plan.path.read_text()) == {
        "format": 1,
        "planned": [
            {"claw": "nanobot", "sample": 1, "instance_ids": ["demo__cronspan-118"]},
            {"claw": "nanobot", "sample": 2, "instance_ids": ["demo__cronspan-118"]},
        ],
    }
