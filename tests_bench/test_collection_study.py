"""What the way of the patch is worth: `pytest -m collection_study`. The agent's edits are the same bytes in every arm."""

from collections.abc import Sequence

import pytest

from collection.results import Collected
from evaluation.collection import Arm, Kind
from gateway.behaviours.message_damage import INTACT, SILENT
from tests_bench.collection_study.corpus import StudyTask

pytestmark = pytest.mark.collection_study


def test_the_arms(study_task: StudyTask, collected: Sequence[Collected]) -> None:
    """The workspace arm adds and loses nothing; an intact message is exact; two defects pass without any error."""
    for row in collected:
        if row.arm is Arm.WORKSPACE:
            assert (row.kind, row.resolved) == (Kind.EXACT, study_task.is_right)
        elif row.condition == INTACT:
            assert row.kind is Kind.EXACT
        elif row.condition in SILENT:
            assert row.kind is Kind.UNDER_EDIT
            assert row.corruption
