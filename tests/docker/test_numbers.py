"""A run's numbers: what the tables show, what summary.json says, and what a threshold makes of them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_run import fresh_id, run_bench
from support.made_up import made_up_case, made_up_record, made_up_run

from adapters.registry import installed
from clawbench.pytest_plugin.conclusion import BELOW, OPEN, Threshold
from demo.task_images import embedded_ids
from evaluation.outcomes import POLICY, Outcome
from records.case_id import CaseId
from records.run_folder import RunDirectory
from reports.numbers import numbers_of, write_summary
from reports.summary import summary_lines
from reports.threshold import Verdict, judge, judge_results, parse_rate

R, U, X = Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.INFRASTRUCTURE


def run_of(folder: Path, **claws: dict[str, list[Outcome | None]]) -> RunDirectory:
    """A run of these outcomes: by claw and instance, sample by sample; None was asked for and never begun."""
    run = made_up_run(RunDirectory.named(folder, "run"), claws)
    for claw, instances in claws.items():
        for instance_id, outcomes in instances.items():
            for sample, outcome in enumerate(outcomes, 1):
                asked = CaseId(claw, instance_id, sample)
                if outcome is None:
                    run.plan.add([asked])
                else:
                    made_up_case(run, asked, outcome)
    return run


def row_of(lines: list[str], title: str, claw: str) -> list[str]:
    after = lines[lines.index(title) + 1 :]
    return next(line.split()[1:] for line in after if line.startswith(f"{claw} "))


# -- tables -------------------------------------------------------------------------------------------


def test_pass_at_1_stands_with_its_interval_and_with_what_it_leaves_out(tmp_path: Path) -> None:
    run = run_of(tmp_path, nanobot={"a": [R], "b": [U], "c": [X], "d": [None], "e": [R], "f": [Outcome.TIMEOUT]})
    lines = summary_lines(run)
    assert row_of(lines, "Pass@1", "nanobot") == ["50.0%", "15.0-85.0%", "33.3%", "4", "4", "1", "1"]
    assert "nanobot: not part of Pass@1, because none of their cases counts: c" in lines
    assert "Samples" not in lines


def test_a_claw_that_was_asked_for_and_has_nothing_is_shown(tmp_path: Path) -> None:
    run = run_of(tmp_path, nanobot={"a": [R]}, hermes={"a": [None]})
    assert row_of(summary_lines(run), "Pass@1", "hermes") == ["-", "-", "0.0%", "0", "0", "0", "1"]


def test_samples_have_a_table_of_their_own(tmp_path: Path) -> None:
    """An instance that lost a sample weighs as much as others, and is left out where all samples are needed."""
    run = run_of(tmp_path, nanobot={"a": [R, R, R], "b": [R, U, X], "c": [U, U, U], "d": [X, X, X]})
    lines = summary_lines(run)
    assert row_of(lines, "Pass@1", "nanobot") == ["50.0%", "12.5-87.5%", "33.3%", "3", "8", "4", "0"]
    samples = " ".join(row_of(lines, "Samples", "nanobot"))
    assert samples == "66.7% of 3 50.0% of 2 66.7% 66.7% 1 of 3"
    assert "nanobot: samples differ in b" in lines
    assert "nanobot: fewer samples than the others: b" in lines


@pytest.mark.parametrize(("instances", "samples"), [(11, 5), (2, 12)])
def test_the_widest_tables_of_samples_fit(tmp_path: Path, instances: int, samples: int) -> None:
    run = made_up_run(RunDirectory.named(tmp_path, "run"))
    for number in range(instances):
        for sample in range(1, samples + 1):
            case = CaseId("a_claw_from_outside_with_a_name", f"some_organisation__repository-{number}", sample)
            run.case(case).begin()
            outcome = X if (number, sample) == (1, samples) else R if sample % 2 else U
            run.finish(run.case(case), made_up_record(case, outcome=outcome, agent_label=f"{case.claw}-bare"))
    lines = summary_lines(run)
    assert "Samples" in lines
    assert max(len(line) for line in lines if not line.startswith("artifacts")) <= 100
    assert not any("…" in line for line in lines)


# -- summary.json -------------------------------------------------------------------------------------


def test_the_summary_is_made_from_the_folders_at_any_time(tmp_path: Path) -> None:
    run = run_of(tmp_path, nanobot={"a": [R, R], "b": [R, U], "c": [X, None]}, zeroclaw={"a": [U]})
    write_summary(run)
    told = json.loads((run.path / "summary.json").read_text())
    assert (told["schema_version"], told["with_outcome"], told["without_outcome"]) == (1, 6, 1)
    nanobot, zeroclaw = told["claws"]
    assert set(nanobot["outcomes"]) == set(Outcome)
    assert nanobot["outcomes"]["resolved"] == 3
    assert nanobot["pass_at_1"]["value"] == 0.75
    assert 0 < nanobot["pass_at_1"]["low"] < 0.75 < nanobot["pass_at_1"]["high"] < 1
    assert nanobot["pass_at_k"]["2"] == {"value": 1.0, "instances": 2}
    assert nanobot["agreement"]["flips"] == {"b": [True, False]}
    assert nanobot["instances_without_a_counted_sample"] == ["c"]
    assert nanobot["without_outcome"] == [{"claw": "nanobot", "instance_id": "c", "sample": 2}]
    assert nanobot["tokens"]["input"] == 50
    assert zeroclaw["pass_at_1"]["value"] == 0.0
    assert zeroclaw["agreement"] is None


def test_what_is_unknown_is_null_in_the_summary(tmp_path: Path) -> None:
    run = made_up_run(RunDirectory.named(tmp_path, "run"))
    cost = {"priced": "0.5", "told": None, "unpriced": 0}
    made_up_case(run, CaseId("nanobot", "a"), cost=cost)
    made_up_case(run, CaseId("nanobot", "b"), cost=cost, tokens={"input": None, "output": 5})
    made_up_case(run, CaseId("hermes", "a"), cost=cost | {"unpriced": 1})
    write_summary(run)
    hermes, nanobot = json.loads((run.path / "summary.json").read_text())["claws"]
    assert nanobot["cost_usd"] == {"priced": 1.0, "told": None}
    assert hermes["cost_usd"] == {"priced": None, "told": None}
    assert nanobot["tokens"]["input"] is None
    assert nanobot["tokens"]["output"] == 10


def test_samples_are_in_their_own_order(tmp_path: Path) -> None:
    """Folders sort the tenth sample before the second."""
    run = run_of(tmp_path, nanobot={"a": [R, U, U, U, U, U, U, U, U, R]})
    assert numbers_of(run)[0].results["a"] == [True, *[False] * 8, True]


# -- the threshold ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("0", 0),
        ("1", 1),
        ("0.4", Fraction(2, 5)),
        ("40%", Fraction(2, 5)),
        ("12.5 %", Fraction(1, 8)),
        ("100%", 1),
    ],
)
def test_a_rate_is_a_share_or_a_percentage(text: str, rate: Fraction) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    ["", "%", "40", "1.01", "101%", "-1%", "nan", "inf", "1/2", "half", "0,4", "4 0%", "1e9999999", "1e-9999999"],
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a share from 0 to 1 or a percentage"):
        parse_rate(text)


@given(
    st.lists(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=3), min_size=1, max_size=5),
    st.fractions(0, 1, max_denominator=12),
)
def test_a_threshold_is_told_just_where_open_cases_have_no_say(
    rows: list[list[bool | None]], rate: Fraction
) -> None:
    judged = judge_results("nanobot", rows, rate)
    ways = product(*([one] if one is not None else [True, False] for row in rows for one in row))
    reached = set()
    for way in ways:
        left = iter(way)
        means = [Fraction(sum(next(left) for _ in row), len(row)) for row in rows]
        reached.add(sum(means, Fraction(0)) / len(means) >= rate)
    told = {Verdict.REACHED: {True}, Verdict.BELOW: {False}, Verdict.OPEN: {True, False}}
    assert reached == told[judged.verdict]


def test_nothing_but_errors_reaches_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path, nanobot={"a": [X], "b": [None]})
    (judged,) = judge(run, run.plan.cases(), Fraction(1, 100))
    assert judged.verdict is Verdict.OPEN
    assert "2 of 2 cases have no verdict that counts" in judged.line


@pytest.fixture(scope="module")
def six_of_ten(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """All that nanobot has to do is done."""
    run = RunDirectory.named(tmp_path_factory.mktemp("runs"), fresh_id("threshold"))
    for number, instance_id in enumerate(sorted(embedded_ids())):
        made_up_case(run, CaseId("nanobot", instance_id), U if number in (2, 3, 5, 7) else R)
    return run


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["--min-pass-rate=60%"], 0, "nanobot: Pass@1 60%: --min-pass-rate 60% is reached"),
        (["--min-pass-rate=0.61"], BELOW, "nanobot: Pass@1 60%: below --min-pass-rate 61%"),
    ],
)
def test_the_exit_status_is_the_thresholds(
    six_of_ten: RunDirectory, options: list[str], code: int, line: str
) -> None:
    run = run_bench(six_of_ten.path.parent, six_of_ten.run_id, "-m", "demo", "-k", "nanobot", *options)
    assert run.exit_code == code, run.output
    assert run.output.strip().splitlines()[-1] == line
    assert json.loads((run.folder / "report.json").read_text())["exitcode"] == code
    told = json.loads((run.folder / "summary.json").read_text())
    assert told["min_pass_rate"]["claws"] == {"nanobot": "reached" if code == 0 else "below"}
    assert told["claws"][0]["pass_at_1"]["value"] == 0.6


@pytest.mark.docker
def test_a_run_that_broke_reaches_no_threshold(tmp_path: Path) -> None:
    """The claw can't be started: an error, whatever the other case says."""
    run = RunDirectory.named(tmp_path / "runs", fresh_id("open"))
    first, second, *_ = sorted(embedded_ids())
    made_up_case(run, CaseId("nanobot", first), R)
    which = ["-k", f"nanobot and ({first} or {second})"]
    home = {"CLAWBENCH_HOME": str(tmp_path / "empty"), "NANOBOT_ENV_PATH": ""}
    done = run_bench(run.path.parent, run.run_id, *which, "--min-pass-rate=0.6", **home)
    assert done.exit_code == OPEN, done.output
    assert "Pass@1 50% to 100%, as 1 of 2 cases have no verdict that counts" in done.output


def report(nodeid: str, when: Literal["setup", "call", "teardown"]) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, "failed", "why", when)


def test_what_fails_beside_the_cases_still_fails_the_command() -> None:
    case = f"tests_bench/test_resolved.py::test_resolved[nanobot-{min(embedded_ids())}]"
    reached = judge_results("nanobot", [[True]], Fraction(1))
    for ended, code in (
        ([report(case, "call"), report(case, "setup")], 0),
        ([report(case, "teardown")], 1),
        ([report("tests/test_other.py::test_other", "call")], 1),
    ):
        threshold = Threshold(Fraction(1), [reached])
        for one in ended:
            threshold.pytest_runtest_logreport(one)
        assert threshold.exit_status(1) == code
        assert [threshold.exit_status(status) for status in (2, 3, 4, 5)] == [2, 3, 4, 5]


def test_only_outcomes_that_count_are_in_a_number(tmp_path: Path) -> None:
    for outcome in Outcome:
        run = made_up_run(RunDirectory.named(tmp_path, f"run-{outcome}"))
        made_up_case(run, CaseId("nanobot", "a"), outcome)
        rate = numbers_of(run)[0].pass_at_1
        assert (rate is not None) == POLICY[outcome].counts
        assert rate is None or (rate.value == 1) == POLICY[outcome].passes
