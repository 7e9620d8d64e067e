"""In which order cases are run: what ended first, then the longest instances, each with all its cases."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.made_up import made_up_export, made_up_record

from clawbench.run.order import Order
from evaluation.lists import listed_instances
from records.case_id import CaseId
from records.durations import Durations
from records.run_folder import RunDirectory, RunError

LISTED = [listed for listed in listed_instances() if not listed.embedded][::9]
CLAWS = ("hermes", "nanobot", "openclaw")


def cases_of(instance_ids: list[str]) -> list[CaseId]:
    return [CaseId(claw, name, sample) for claw in CLAWS for name in instance_ids for sample in (1, 2)]


def instance_of(case_id: str) -> str:
    return case_id.partition("-")[2].removesuffix("-s2")


def arranged(order: Order, cases: list[CaseId]) -> list[str]:
    return [str(case) for case in sorted(cases, key=order.place)]


def test_the_longest_instance_is_first_with_all_its_cases(tmp_path: Path) -> None:
    short, long, unknown = (listed.instance_id for listed in LISTED[:3])
    durations = Durations(tmp_path, "openai/gpt-5")
    durations.note(short, "nanobot", {"agent": 10, "image": 900, "waiting": 900})
    durations.note(long, "nanobot", {"agent": 100})
    durations.note(long, "hermes", {"agent": 300})
    order = Order.settle(RunDirectory(tmp_path / "run"), durations, resume=True)
    # the median of what is known stands for what is not
    names = (long, unknown, short)
    expected = [f"{claw}-{name}{sample}" for name in names for claw in CLAWS for sample in ("", "-s2")]
    assert arranged(order, cases_of([short, long, unknown])) == expected


def test_what_has_ended_is_first_and_what_broke_is_run_again_in_its_place(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    names = [listed.instance_id for listed in LISTED[:3]]
    for claw, name, outcome in (
        ("nanobot", names[0], "unresolved"),
        ("nanobot", names[1], "infrastructure"),
        ("nanobot", names[2], "run_cost_limit"),
    ):
        case = CaseId(claw, name)
        made_up_export(run.case(case), "")
        run.finish(run.case(case), made_up_record(case, outcome=outcome))
    order = Order.settle(run, Durations(tmp_path, "m"), resume=True)
    assert order.finished == {f"nanobot-{names[0]}"}
    assert arranged(order, cases_of(names))[0] == f"nanobot-{names[0]}"
    assert Order.settle(run, Durations(tmp_path, "m"), resume=False).finished == frozenset()
    (run.case(CaseId("nanobot", names[0])).path / "git.patch").write_text("torn")
    assert Order.settle(run, Durations(tmp_path, "m"), resume=True).finished == frozenset(), "it is judged again"


@pytest.mark.parametrize("outcome", ["won", 7, ["resolved"]])
@pytest.mark.parametrize("resume", [True, False])
def test_an_outcome_that_is_none_ends_the_command_in_words(tmp_path: Path, outcome: object, resume: bool) -> None:
    run = RunDirectory(tmp_path / "run")
    case = run.case(CaseId("nanobot", LISTED[0].instance_id))
    case.path.mkdir(parents=True)
    (case.path / "metadata.json").write_text(json.dumps({"format": 1, "outcome": outcome}) + "\n")
    with pytest.raises(RunError, match="is not a valid record"):
        Order.settle(run, Durations(tmp_path, "m"), resume=resume)


def test_a_verdict_that_cant_be_read_ends_the_command_in_words(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    case = run.case(CaseId("nanobot", LISTED[0].instance_id))
    (case.path / "metadata.json").mkdir(parents=True)
    with pytest.raises(RunError, match=f"{case.path} can't be read"):
        Order.settle(run, Durations(tmp_path, "m"), resume=True)


@given(
    known=st.dictionaries(st.sampled_from([listed.instance_id for listed in LISTED]), st.floats(0, 1e5)),
    finished=st.sets(st.sampled_from([f"nanobot-{listed.instance_id}" for listed in LISTED])),
    rng=st.randoms(use_true_random=False),
)
def test_every_worker_has_the_same_order_and_instances_stay_together(
    known: dict[str, float], finished: set[str], rng: random.Random
) -> None:
    order = Order(finished=frozenset(finished), seconds=known, usual={"multilingual": 7.0})
    cases = cases_of([listed.instance_id for listed in LISTED])
    handed_over = Order.model_validate_json(order.model_dump_json())
    first = arranged(order, cases)
    assert first == arranged(handed_over, cases)
    assert sorted(first) == sorted(map(str, cases))
    assert set(first[: len(finished)]) == finished
    left = [instance_of(name) for name in first[len(finished) :]]
    changes = [name for before, name in zip([None, *left], left, strict=False) if name != before]
    assert len(changes) == len(set(left)), "the cases of an instance stand next to each other"
    rng.shuffle(cases)
    assert [instance_of(name) for name in arranged(order, cases)][len(finished) :] == left


def test_durations_of_other_models_are_better_than_none(tmp_path: Path) -> None:
    Durations(tmp_path, "openai/gpt-5").note("a", "nanobot", {"agent": 20})
    Durations(tmp_path, "openai/gpt-5").note("a", "hermes", {"agent": 40})
    Durations(tmp_path, "other").note("a", "nanobot", {"agent": 90})
    assert Durations(tmp_path, "openai/gpt-5").by_instance() == {"a": 30}
    assert Durations(tmp_path, "third").by_instance() == {"a": 60}


def test_a_damaged_file_of_durations_says_nothing_and_is_made_anew(tmp_path: Path) -> None:
    Durations(tmp_path, "m").note("a", "nanobot", {"agent": 20})
    (tmp_path / "m.json").write_text('{"a": {"nanobot": "x"}, "b": 3}')
    assert Durations(tmp_path, "m").by_instance() == {}
    Durations(tmp_path, "m").note("b", "nanobot", {"agent": 5})
    assert Durations(tmp_path, "m").by_instance() == {"b": 5}


def test_cases_that_end_at_once_are_all_noted(tmp_path: Path) -> None:
    names = [f"instance-{number}" for number in range(16)]
    threads = [
        threading.Thread(target=Durations(tmp_path, "m").note, args=(name, "nanobot", {"agent": 1.0}))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(Durations(tmp_path, "m").by_instance()) == set(names)
