"""`clawbench compare`: paired numbers computed by hand, confounders that are named, and what the command prints."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.made_up import CLAW, made_up_case, made_up_manifest
from support.user_commands import documented
from typer.testing import CliRunner, Result

from clawbench.cli import app
from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.models import CaseManifest, RunManifest
from records.run_folder import RunDirectory
from reports.comparison.comparison import compare
from reports.comparison.comparison_view import as_markdown
from reports.comparison.contenders import Contender, contenders
from reports.comparison.grid import grid_of, spread
from reports.comparison.manifest_differences import FACTORS, HARMLESS, factor_of, facts_of
from reports.comparison.paired import bounds, exact_test, holm, mean_difference, pair
from reports.published import distances, published_rows
from reports.samples import wilson

YES, NO, OPEN = Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.INFRASTRUCTURE
ROOT = Path(__file__).resolve().parents[2]

# -- arithmetic -----------------------------------------------------------------------------------


def table(won: int, lost: int, both: int, neither: int) -> tuple[dict[str, list[bool]], dict[str, list[bool]]]:
    """One sample each, with so many instances in the four cells."""
    cells = [(False, True)] * won + [(True, False)] * lost + [(True, True)] * both + [(False, False)] * neither
    return (
        {f"i{number:03}": [first] for number, (first, _) in enumerate(cells)},
        {f"i{number:03}": [second] for number, (_, second) in enumerate(cells)},
    )


def test_a_table_computed_by_hand() -> None:
    """10 won, 2 lost, 20 both, 18 neither: P(X >= 10 or X <= 2) of 12 fair coins is 2 * (1 + 12 + 66) / 4096."""
    found = pair(*table(10, 2, 20, 18))
    assert found is not None
    assert [len(names) for names in (found.won, found.lost, found.both, found.neither)] == [10, 2, 20, 18]
    assert (found.first, found.second) == (22 / 50, 30 / 50)
    assert found.difference.mean == pytest.approx(8 / 50)
    assert found.p_value == pytest.approx(158 / 4096)
    # the variance of the differences is (12 - 8 * 8 / 50) / 49 = 0.21877..., and (1.95996 + 0.84162)^2 = 7.84888
    assert found.needed_instances == 68  # 7.84888 * 0.21877 / 0.16^2 = 67.07
    assert found.detectable == pytest.approx((7.84888 * 0.218776 / 50) ** 0.5, rel=1e-4)
    assert (
        found.needed_samples is None
    )  # with one sample each, nothing is known about the chance within an instance


@given(st.integers(0, 40), st.integers(0, 40))
def test_with_one_sample_the_exact_test_is_mcnemars(won: int, lost: int) -> None:
    wanted = stats.binomtest(won, won + lost).pvalue if won + lost else 1.0
    assert exact_test([1] * won + [-1] * lost + [0, 0]) == pytest.approx(wanted)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
def test_with_several_samples_the_exact_test_counts_every_assignment_of_signs(differences: list[int]) -> None:
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    wanted = sum(one >= abs(sum(differences)) for one in sums) / len(sums)
    assert exact_test(differences) == pytest.approx(wanted)


@settings(max_examples=15)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(1, 6))
def test_the_interval_holds_the_difference_and_has_a_width(won: int, lost: int, both: int, neither: int) -> None:
    found = pair(*table(won, lost, both, neither))
    assert found is not None
    low, high = found.difference.low, found.difference.high
    assert low is not None
    assert high is not None
    assert -1 <= low <= found.difference.mean <= high <= 1
    assert low < high


def test_the_interval_of_a_quantity_is_scipys_bootstrap() -> None:
    first, second = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.0, 4.0, 4.5, 7.0, 6.5]
    found = mean_difference(first, second)
    wanted = stats.bootstrap(
        (np.subtract(second, first),), np.mean, n_resamples=9_999, rng=20260101
    ).confidence_interval
    assert (found.mean, found.low, found.high) == (pytest.approx(0.75), wanted.low, wanted.high)
    assert mean_difference([1.0], [2.0]).low is None
    assert mean_difference([1.0, 2.0], [2.0, 3.0]).low == 1.0


def test_holms_correction_computed_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_samples_of_an_instance_are_one_observation() -> None:
    """Ten samples that always agree show no more than one does."""
    first, second = table(5, 0, 3, 3)
    once = pair(first, second)
    often = pair({name: row * 10 for name, row in first.items()}, {name: row * 10 for name, row in second.items()})
    assert once is not None
    assert often is not None
    assert often.p_value == once.p_value
    assert often.difference == once.difference
    assert often.needed_samples is None  # what differs between instances does not shrink with more samples


def test_samples_that_would_be_enough() -> None:
    """Instances that are alike, whose samples differ by chance: more samples help as more instances would.

    Within each instance the variance of one sample's difference is 2 * 0.25 * 4 / 3 = 2 / 3, and the differences of
    the instances are equal but for that chance.
    """
    first = {f"i{number}": [True, False, False, False] for number in range(4)}
    second = {f"i{number}": [True, True, False, False] for number in range(4)}
    found = pair(first, second)
    assert found is not None
    # within one sample: 0.25 + 0.3333; room: 0.25^2 * 4 / 7.84888 = 0.031852
    assert found.needed_samples == 19  # 0.58333 / 0.031852 = 18.3


def test_cases_without_a_verdict_bound_the_difference_both_ways() -> None:
    first: dict[str, list[bool | None]] = {"a": [True], "b": [None], "c": [False, None], "only": [True]}
    second: dict[str, list[bool | None]] = {"a": [True], "b": [False], "c": [None]}
    found = bounds(first, second)
    assert (found.open, found.instances) == (3, 3)
    # first at most (1 + 1 + 1/2) / 3 and at least 1/3; second at least 1/3 and at most 2/3
    assert (found.low, found.high) == (pytest.approx(1 / 3 - 2.5 / 3), pytest.approx(2 / 3 - 1 / 3))
    paired = pair(first, second)
    assert paired is not None
    assert paired.instances == 1


# -- runs -----------------------------------------------------------------------------------------


def made(
    path: Path,
    results: Mapping[str, Mapping[str, Outcome]],
    facts: Mapping[str, Any] | None = None,
    of_run: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    **options: Any,
) -> RunDirectory:
    """A run with these outcomes by claw and instance, and other facts in its cases' manifests and records and its own."""
    run = RunDirectory(path)
    run.open(RunManifest.model_validate({**made_up_manifest(results, **options).facts(), **(of_run or {})}))
    for claw, outcomes in results.items():
        for instance_id, outcome in outcomes.items():
            folder = made_up_case(run, CaseId(claw, instance_id), outcome, **(record or {}))
            manifest = folder.manifest()
            assert manifest is not None
            folder.keep_manifest(CaseManifest.model_validate({**manifest.facts(), **(facts or {})}))
    return run


def asked(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


OUTCOMES = {f"acme__tool-{number}": YES if number % 3 else NO for number in range(12)}
BETTER = dict.fromkeys(OUTCOMES, YES)
FEW = {name: OUTCOMES[name] for name in list(OUTCOMES)[:3]}


def test_claws_of_a_run_are_compared_pair_by_pair(tmp_path: Path) -> None:
    made(tmp_path / "r", {"nanobot": OUTCOMES, "openclaw": BETTER, "hermes": dict.fromkeys(OUTCOMES, NO)})
    done = asked(tmp_path / "r", "--format", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert [(one["first"], one["second"]) for one in found["pairs"]] == [
        ("hermes", "nanobot"),
        ("hermes", "openclaw"),
        ("nanobot", "openclaw"),
    ]
    assert all(one["comparability"]["studied"] == ["claw"] for one in found["pairs"])
    plain = [one["paired"]["p_value"] for one in found["pairs"]]
    assert plain == pytest.approx([2 / 2**8, 2 / 2**12, 2 / 2**4])
    assert [one["p_corrected"] for one in found["pairs"]] == pytest.approx([4 / 2**8, 6 / 2**12, 2 / 2**4])
    assert found["pairs"][2]["paired"]["won"] == [name for name, outcome in OUTCOMES.items() if outcome is NO]
    assert found["pairs"][1]["conclusion"].startswith("openclaw resolves more than hermes")
    assert "do not show whether openclaw resolves more or less than nanobot" in found["pairs"][2]["conclusion"]
    assert "It would take about" in found["pairs"][2]["conclusion"]


def test_a_run_against_itself_shows_no_difference(tmp_path: Path) -> None:
    run = made(tmp_path / "r", {"nanobot": OUTCOMES})
    done = asked(run.path, run.path, "--format", "json", "--fail-if-worse")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)["pairs"][0]
    assert found["comparability"] == {"studied": [], "confounding": [], "differences": []}
    assert (found["paired"]["won"], found["paired"]["lost"], found["paired"]["p_value"]) == ([], [], 1.0)
    assert asked(run.path, run.path, "--expect-same").output == "all 12 cases ended alike\n"


def test_who_asked_nothing_or_says_nothing_does_not_differ_in_the_request(tmp_path: Path) -> None:
    asked_once = made(tmp_path / "first", {"nanobot": FEW}, record=ASKED)
    of_a_session = {"settings": {"temperature": 0.1, "user": "a session's own name"}, "system_sha256": "2" * 64}
    for name, told in {"old": None, "odd": ASKED | {"first_request": FIRST_REQUEST | of_a_session}}.items():
        other = made(tmp_path / name, {"nanobot": FEW}, record=told)
        done = asked(asked_once.path, other.path, "--format", "json")
        found = json.loads(done.output)["pairs"][0]["comparability"]
        assert (found["studied"], found["confounding"]) == ([], []), done.output


SETTINGS: dict[str, tuple[str, Any]] = {
    "collection": ("collect", "message-fuzzy"),
    "model": ("model", "acme/big-2"),
    "provider": ("served", {"behind": {"base_url": "https://other.example"}}),
    "budget": ("agent_timeout", 60),
    "network": ("network", "open"),
    "machine": ("memory", "1g"),
    "harness": ("eval_timeout", 60),
    "dataset": ("dataset_sha256", "1" * 64),
}
"""A setting of each factor, with another value than that of the made-up runs."""
OF_THE_RUN: dict[str, dict[str, Any]] = {
    "suite": {"clawbench": {"version": "9.9.9", "commit": None}},
    "config": {"claws": {"nanobot": CLAW | {"config_sha256": "1" * 64}}},
}
"""The same for facts of the run's manifest."""
FACTS: dict[str, dict[str, Any]] = {
    "version": {"claw": {"name": "nanobot", "version": "9.9.9"}},
    "adapter": {"allowed_tools": ["exec"]},
    "prompt": {"prompt_template_sha256": "1" * 64},
    "harness": {"harness": "swebench 9.9.9"},
    "dataset": {"row_sha256": "1" * 64},
    "image": {"history": {"digest": "sha256:1"}},
    "machine": {"engine": {"architecture": "aarch64"}},
}
"""The same for facts of the cases' manifests."""


FIRST_REQUEST = {"api": "chat", "system_sha256": None, "tools_sha256": "1" * 64, "settings": {"temperature": 0.1}}
ASKED: dict[str, Any] = {"models": ["big-1"], "served_models": ["big-1"], "first_request": FIRST_REQUEST}
IN_RECORDS: dict[str, dict[str, Any]] = {
    "request": {"first_request": FIRST_REQUEST | {"settings": {"temperature": 0.1, "max_tokens": 9}}},
    "model": {"served_models": ["big-1-0401"]},
}
"""The same for what the cases' records say about the first request."""
KINDS: dict[str, dict[str, Any]] = {
    "setting": dict(SETTINGS),
    "fact": dict(FACTS),
    "run": dict(OF_THE_RUN),
    "record": dict(IN_RECORDS),
}
PLANTED = [f"{kind}:{name}" for kind, names in KINDS.items() for name in names]


def test_a_confounder_of_each_factor_is_planted() -> None:
    assert {one.partition(":")[2] for one in PLANTED} == set(FACTORS) - {"claw", HARMLESS}


@pytest.mark.parametrize("factor", PLANTED)
def test_a_planted_confounder_is_named_and_hides_the_difference(factor: str, tmp_path: Path) -> None:
    """Two claws are under study, and the second had another prompt, budget, image, ... than the first."""
    kind, _, name = factor.partition(":")
    first = made(tmp_path / "first", {"nanobot": FEW}, record=ASKED)
    if kind == "record":
        better = {"nanobot": dict.fromkeys(FEW, YES)}
        second = made(tmp_path / "second", better, record=ASKED | IN_RECORDS[name])
    elif kind == "setting":
        key, value = SETTINGS[name]
        second = made(
            tmp_path / "second", {"nanobot": dict.fromkeys(FEW, YES)}, settings_of(key, value), **{key: value}
        )
    elif kind == "run":
        second = made(tmp_path / "second", {"nanobot": dict.fromkeys(FEW, YES)}, of_run=OF_THE_RUN[name])
    else:
        second = made(tmp_path / "second", {"nanobot": dict.fromkeys(FEW, YES)}, FACTS[name])
    done = asked(first.path, second.path, "--vary", "claw")
    assert done.exit_code == 2, done.output
    assert f"Not comparable: first and second also differ in {name}." in done.output
    assert "points" not in done.output
    assert "66.7%" not in done.output.split("Not comparable")[1]
    marked = asked(first.path, second.path, "--vary", "claw", "--allow-confounded")
    assert marked.exit_code == 0
    headings = [
        line for line in marked.output.splitlines() if line.startswith(("Pass@1", "Mean", "second against"))
    ]
    assert headings
    assert all("CONFOUNDED" in line for line in headings)
    guessed = asked(first.path, second.path)
    assert guessed.exit_code == 0
    assert f"Under study: {name}." in guessed.output


def settings_of(key: str, value: Any) -> dict[str, Any]:
    return {"settings": {"model": "acme/big-1", "network": "gateway", "collect": "workspace", key: value}}


def test_a_setting_that_no_rule_knows_confounds(tmp_path: Path) -> None:
    first = made(tmp_path / "first", {"nanobot": OUTCOMES}, temperature=0)
    second = made(tmp_path / "second", {"openclaw": OUTCOMES}, temperature=1)
    assert "also differ in settings.temperature." in " ".join(
        asked(first.path, second.path, "--vary", "claw").output.split()
    )


def test_what_belongs_to_a_claw_is_studied_with_it(tmp_path: Path) -> None:
    first = made(tmp_path / "first", {"nanobot": OUTCOMES}, {"prompt_template_sha256": "1" * 64})
    second = made(tmp_path / "second", {"openclaw": OUTCOMES}, {"allowed_tools": ["exec"]})
    done = asked(first.path, second.path)
    assert done.exit_code == 0, done.output
    assert "Under study: claw." in done.output


@pytest.mark.parametrize("model", [RunManifest, CaseManifest])
def test_every_fact_of_a_manifest_has_a_factor(model: type[RunManifest | CaseManifest]) -> None:
    """A new fact is given a factor, or it confounds every comparison."""
    elsewhere = {
        "claws",
        "limits",
        "created",
        "instance_id",
        "settings",
        "claw",
        "model",
    }  # taken apart or left out
    roots = {path.partition(".")[0] for beginnings in FACTORS.values() for path in beginnings}
    assert set(model.model_fields) - elsewhere <= roots
    assert factor_of("engine.version") == HARMLESS
    assert factor_of("engine.version_of_something") == "engine.version_of_something"


def test_facts_are_flat() -> None:
    assert facts_of({"a": {"b": {"c": 1}, "d": {}}, "e": [1]}) == {"a.b.c": 1, "e": [1]}


def test_verdicts_that_changed_are_listed(tmp_path: Path) -> None:
    first = made(tmp_path / "first", {"nanobot": {"acme__tool-1": YES, "acme__tool-2": YES, "acme__tool-3": YES}})
    second = made(tmp_path / "second", {"nanobot": {"acme__tool-1": YES, "acme__tool-2": NO}})
    done = asked(first.path, second.path, "--expect-same")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "nanobot-acme__tool-2: resolved before, unresolved now",
        "nanobot-acme__tool-3: resolved before, not in the run now",
    ]
    other = made(tmp_path / "other", {"nanobot": {"acme__tool-1": YES}}, model="acme/big-2")
    done = asked(first.path, other.path, "--expect-same")
    assert done.exit_code == 2
    assert "nanobot: model: settings.model is acme/big-1 and acme/big-2" in done.output


def test_worse_fails_a_job_and_unclear_does_not(tmp_path: Path) -> None:
    good = made(tmp_path / "good", {"nanobot": BETTER})
    bad = made(tmp_path / "bad", {"nanobot": dict.fromkeys(BETTER, NO)}, model="acme/big-2")
    unclear = made(tmp_path / "unclear", {"nanobot": OUTCOMES}, model="acme/big-2")
    assert asked(good.path, bad.path, "--fail-if-worse").exit_code == 1
    assert asked(bad.path, good.path, "--fail-if-worse").exit_code == 0
    assert asked(good.path, unclear.path, "--fail-if-worse").exit_code == 0


def test_cases_without_a_verdict_are_told(tmp_path: Path) -> None:
    first = made(tmp_path / "first", {"nanobot": OUTCOMES})
    second = made(
        tmp_path / "second", {"nanobot": {**BETTER, "acme__tool-0": OPEN, "acme__tool-99": YES}}, model="other"
    )
    done = asked(first.path, second.path)
    text = " ".join(done.output.split())
    assert "1 case has no verdict: depending on them, the difference over all 12 instances lies between" in text
    assert "+25.0 and +33.3 points" in text
    assert "Not compared, because only second has them: acme__tool-99" in text


def test_a_report_of_the_official_harness_is_never_comparable(tmp_path: Path) -> None:
    run = made(tmp_path / "r", {"nanobot": OUTCOMES})
    report = tmp_path / "elsewhere.json"
    report.write_text(
        json.dumps(
            {"submitted_ids": list(OUTCOMES), "resolved_ids": list(OUTCOMES), "error_ids": ["acme__tool-5"]}
        )
    )
    done = asked(run.path, report)
    assert done.exit_code == 2
    assert "nothing says how the patches" in " ".join(done.output.split())
    shown = asked(run.path, report, "--allow-confounded", "--format", "json")
    found = json.loads(shown.stdout)
    assert found["contenders"][1]["is_made_elsewhere"]
    assert found["contenders"][1]["without_verdict"] == 1
    assert found["pairs"][0]["conclusion"].endswith("because nothing says how the patches of one were made.")
    report.write_text("[]")
    assert "is not a report of the official harness" in asked(run.path, report).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r"], "nanobot alone can't be compared"),
        (["r", "nothing"], "there is no run nothing"),
        (["r", "r:openclaw"], "has no claw openclaw; it has nanobot"),
        (["r", "r", "--vary", "weather"], "--vary weather: the factors are claw, version,"),
        (["r", "--expect-same"], "--expect-same takes two runs"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    made(tmp_path / "r", {"nanobot": OUTCOMES})
    done = asked(*arguments, "--artifacts", tmp_path)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_csv_and_markdown_say_the_same(tmp_path: Path) -> None:
    run = made(tmp_path / "r", {"nanobot": OUTCOMES, "openclaw": BETTER})
    (row,) = csv.DictReader(io.StringIO(asked(run.path, "--format", "csv").output))
    assert (row["first"], row["second"], row["won"], row["lost"], row["instances"]) == (
        "nanobot",
        "openclaw",
        "4",
        "0",
        "12",
    )
    assert float(row["seconds_first"]) == 60
    page = asked(run.path, "--format", "markdown").output
    assert "| 12 | 66.7% | 100.0% | +33.3 |" in page
    assert row["conclusion"].split(":")[0] in page


def test_a_name_is_not_markup() -> None:
    hostile = Contender("<img src=x>|**", "a", "a", "m", {CaseId("a", "x"): YES}, {"x": {"run_id": "1"}})
    page = as_markdown(
        compare([hostile, Contender("b", "b", "b", "m", {CaseId("b", "x"): YES}, {"x": {"run_id": "2"}})])
    )
    assert r"\<img src=x\>\|\*\*" in page
    assert "<img" not in page.replace(r"\<", "")


def test_the_published_table_gives_the_papers_picture() -> None:
    """Mean squares by hand: models 0.10034, claws 0.00784, rest 0.00119; so 0.1188, 0.0471 and 0.0345."""
    found = spread(grid_of((row.claw, row.model, row.pass_at_1) for row in published_rows() if row.version == 2))
    assert found is not None
    assert (len(found.claws), len(found.models)) == (7, 3)
    parts = (found.model, found.claw, found.rest)
    assert [one.deviation for one in parts] == pytest.approx([0.1188, 0.0471, 0.0345], abs=1e-4)
    assert all(one.low < one.deviation < (one.high or 1) for one in parts)
    # model and claw move the score by 23.6 and 14.9 points on average, and three models are too few to rank them
    assert [one.difference for one in parts[:2]] == pytest.approx([0.236, 0.149], abs=1e-3)
    assert "The intervals overlap" in found.conclusion


def test_a_grid_of_sums_has_no_rest() -> None:
    found = spread(
        {(claw, model): a + b for claw, a in (("x", 0.1), ("y", 0.3)) for model, b in (("m", 0.2), ("n", 0.6))}
    )
    assert found is not None
    assert found.rest.deviation == pytest.approx(0)
    assert found.model.difference == pytest.approx(0.4)
    assert found.claw.deviation == pytest.approx((0.2**2 / 2) ** 0.5)
    assert spread({("x", "m"): 0.1, ("y", "n"): 0.2}) is None
    assert spread({("x", "m"): 0.1, ("y", "m"): 0.2}) is None
    flat = spread(dict.fromkeys(product("xyz", "mn"), 0.5))
    assert flat is not None
    assert flat.model.deviation == 0


def test_a_grid_of_runs_shows_its_spread_and_the_published_results(tmp_path: Path) -> None:
    for name, model in (("one", "z/glm-5.1"), ("two", "acme/big-2")):
        made(tmp_path / name, {"nanobot": OUTCOMES, "openclaw": BETTER}, model=model)
    done = asked("one", "two", "--vary", "claw", "--artifacts", tmp_path)
    text = " ".join(done.output.split())
    assert "Over 2 claws and 2 models, Pass@1 varies with the claw by" in text
    # both versions of the paper, for both claws with GLM 5.1
    assert (
        len(
            [
                line
                for line in done.output.splitlines()
                if line.startswith("one:") and "to" in line and "12" in line
            ]
        )
        == 4
    )
    other = made(
        tmp_path / "other", {"nanobot": OUTCOMES, "openclaw": BETTER}, model="acme/big-2", agent_timeout=1
    )
    confounded = asked("one", other.path, "--allow-confounded", "--artifacts", tmp_path)
    assert "Pass@1 varies with" not in confounded.output


def test_the_distance_to_a_published_row_computed_by_hand() -> None:
    """280 of 350 against 71.2% of 350: Newcombe's interval from the two Wilson intervals."""
    (found,) = (
        one
        for one in distances("openclaw", "openrouter/z-ai/glm-5.1", {str(n): [n < 280] for n in range(350)})
        if one.published.version == 2
    )
    (low, high), (own_low, own_high) = wilson(0.712, 350), wilson(0.8, 350)
    assert found.difference == pytest.approx(0.088)
    assert found.low == pytest.approx(0.088 - ((0.8 - own_low) ** 2 + (high - 0.712) ** 2) ** 0.5)
    assert found.high == pytest.approx(0.088 + ((own_high - 0.8) ** 2 + (0.712 - low) ** 2) ** 0.5)
    assert list(distances("openclaw", "scripted:oracle", {"a": [True]})) == []


def test_contenders_have_the_shortest_names_that_tell_them_apart(tmp_path: Path) -> None:
    made(tmp_path / "one", {"nanobot": OUTCOMES, "openclaw": OUTCOMES})
    made(tmp_path / "two", {"nanobot": OUTCOMES})

    def names(*arguments: str) -> list[str]:
        return [one.name for one in contenders(arguments, tmp_path)]

    assert names("one") == ["nanobot", "openclaw"]
    assert names("one:nanobot", "two") == ["one", "two"]
    assert names("one", "two") == ["one:nanobot", "one:openclaw", "two:nanobot"]
    assert names("two", "two") == ["nanobot (1)", "nanobot (2)"]


def test_the_pages_commands_do_what_it_says(tmp_path: Path) -> None:
    made(tmp_path / "before", {"nanobot": OUTCOMES, "openclaw": BETTER})
    made(tmp_path / "after", {"nanobot": BETTER, "openclaw": BETTER}, model="acme/big-2")
    for command in documented(ROOT / "docs" / "comparing.md"):
        if command[:2] == ["clawbench", "compare"]:
            done = asked(*command[2:], "--artifacts", tmp_path)
            assert done.exit_code == (2 if "--expect-same" in command else 0), f"{command}\n{done.output}"
