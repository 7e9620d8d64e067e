"""What a run will take: by hand from earlier runs, and from the published results where there are none."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from statistics import stdev

import pytest
from support.made_up import made_up_case, made_up_run

from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.run_folder import RunDirectory
from reports.estimate import estimate, lines

MODEL = "acme/big-1"
IDS = ["redis__redis-11734", "axios__axios-4731", "django__django-12308", "sphinx-doc__sphinx-8551"]


def cases(*names: str, claw: str = "nanobot") -> list[CaseId]:
    return [CaseId(claw, name) for name in names]


def cost(dollars: str) -> dict[str, object]:
    return {"priced": Decimal(dollars), "told": None, "unpriced": 0, "held": Decimal(dollars)}


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    first = made_up_run(RunDirectory.named(folder, "first"))
    made_up_case(first, CaseId("nanobot", IDS[0]), seconds={"agent": 90.0, "image": 900.0}, cost=cost("1"))
    made_up_case(first, CaseId("nanobot", IDS[1]), seconds={"agent": 30.0}, cost=cost("2"))
    made_up_case(first, CaseId("nanobot", IDS[2]), Outcome.INFRASTRUCTURE, seconds={"agent": 9000.0})
    second = made_up_run(RunDirectory.named(folder, "second"))
    made_up_case(second, CaseId("nanobot", IDS[0]), Outcome.UNRESOLVED, seconds={"agent": 110.0}, cost=cost("3"))
    other = made_up_run(RunDirectory.named(folder, "other"), model="acme/other")
    made_up_case(other, CaseId("nanobot", IDS[0]), seconds={"agent": 5000.0}, cost=cost("50"))
    return folder


def test_earlier_cases_of_the_same_claw_and_model_count(artifacts: Path) -> None:
    found = estimate(cases(IDS[0], IDS[3]), MODEL, artifacts, label="{claw}", has_price=True)
    assert found.seconds is not None
    assert found.dollars is not None
    assert found.seconds.value == 100 + (100 + 30) / 2  # its own mean, and the mean of all for the unknown one
    assert found.dollars.value == 2 + (2 + 2) / 2
    error = 1.96 * stdev([100, 30]) * (2 + 1 / 2) ** 0.5
    assert found.seconds.high == pytest.approx(165 + error)
    assert found.seconds.low == pytest.approx(165 - error)
    assert found.rests_on == ["nanobot: 3 earlier cases with this model, in first, second"]


def test_without_earlier_cases_published_results_count(artifacts: Path) -> None:
    found = estimate(
        cases(*IDS, claw="openclaw"), "openrouter/z-ai/glm-5.1", artifacts, label="{claw}", has_price=True
    )
    assert found.seconds is not None
    assert found.dollars is not None
    assert found.seconds.value == pytest.approx(4 * 511)
    assert found.dollars.value == pytest.approx(4 * 338 / 350)
    assert (found.dollars.low, found.dollars.high) == (found.dollars.value / 2, found.dollars.value * 2)
    assert "for this claw and model" in found.rests_on[0]
    unknown = estimate(cases(*IDS, claw="toyclaw"), "acme/new", artifacts, label="{claw}", has_price=True)
    assert "for other claws and models" in unknown.rests_on[0]
    assert unknown.dollars is not None
    assert unknown.dollars.low < unknown.dollars.value < unknown.dollars.high


def test_a_free_model_costs_nothing_and_takes_an_unknown_time(artifacts: Path) -> None:
    found = estimate(cases(*IDS), "scripted:oracle", artifacts, label="{claw}", has_price=False)
    assert lines(found, 2)[0] == "estimate for 4 cases, 2 at a time: unknown time, no cost"


def test_agents_at_work_at_the_same_time_share_the_hours(artifacts: Path) -> None:
    found = estimate(cases(IDS[0], IDS[3]), MODEL, artifacts, label="{claw}", has_price=True)
    assert "about 2.8 minutes" in lines(found, 1)[0]
    assert "about 1.4 minutes" in lines(found, 2)[0]
    assert "about $4.00" in lines(found, 2)[0]
