"""The benchmark from the outside: real containers, the real nanobot, the official harness."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.bench_run import ONE, ONE_ID, BenchRun, containers_of, fresh_id, run_bench
from swebench.harness.grading import get_eval_report
from swebench.harness.utils import get_predictions_from_file, make_test_spec
from typer.testing import CliRunner

from adapters.registry import installed
from clawbench.cli import app
from demo.task_images import TASK_REPO
from evaluation.instances import load_instance
from evaluation.lists import by_id
from records.journal import Entry
from records.run_folder import RunDirectory

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot"),
]

FOUR_IDS = ["demo__csvline-19", "demo__hmap-73", "demo__ledgerlite-204", "demo__spanset-44"]
"""Instances whose languages differ. All ten, for every claw, are in `tests/long/test_embedded_set.py`."""
FOUR = "nanobot and (csvline or hmap or ledgerlite or spanset)"


def gold(instance_id: str) -> str:
    return (TASK_REPO / "tasks" / instance_id / "gold.patch").read_text()


def edits(patch: str) -> list[str]:
    """The lines that a patch adds and removes, file by file: what two tools' headers don't change."""
    return [
        line
        for line in patch.splitlines()
        if re.match(r"(\+|-|diff --git )", line) and line[:4] not in ("+++ ", "--- ")
    ]


def of_cases(run: BenchRun) -> list[Entry]:
    """What the journal says of the run's cases."""
    return [entry for entry in RunDirectory(run.folder).journal.read().entries if entry.case is not None]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    """Four tasks, more workers than cores, and the scripted model that knows the fix."""
    folder = tmp_path_factory.mktemp("runs")
    return run_bench(folder, fresh_id("oracle"), "-n", "4", "-m", "demo", "-k", FOUR)


class TestOracle:
    def test_all_pass(self, oracle: BenchRun) -> None:
        assert oracle.counts == {"passed": 4}, oracle.output
        assert oracle.outcomes() == dict.fromkeys(FOUR_IDS, "resolved")

    def test_nothing_is_left_in_the_engine(self, oracle: BenchRun) -> None:
        assert containers_of(oracle.folder.name) == []

    def test_the_official_harness_reads_the_predictions(self, oracle: BenchRun) -> None:
        rows = get_predictions_from_file(str(oracle.folder / "nanobot" / "predictions.jsonl"), "", "")
        assert [row["instance_id"] for row in rows] == FOUR_IDS
        assert {row["model_name_or_path"] for row in rows} == {"nanobot/scripted:oracle"}
        for row in rows:
            assert edits(row["model_patch"]) == edits(gold(row["instance_id"]))

    def test_the_official_harness_grades_an_exported_run_as_we_do(self, oracle: BenchRun, tmp_path: Path) -> None:
        """From the logs alone, as the leaderboard does: none of our own files is asked."""
        words = ["export", str(oracle.folder), f"--to={tmp_path}", "--subset", "--name=mine"]
        assert CliRunner().invoke(app, words).exit_code == 0
        exported = tmp_path / "mine"
        claimed = json.loads((exported / "results" / "results.json").read_text())["resolved"]
        for row in get_predictions_from_file(str(exported / "all_preds.jsonl"), "", ""):
            name = row["instance_id"]
            spec = make_test_spec(load_instance(by_id()[name], demo=TASK_REPO).for_harness())
            log = exported / "logs" / name / "test_output.txt"
            report = get_eval_report(spec, prediction=row, test_log_path=str(log), include_tests_status=True)
            assert report[name]["resolved"] == (name in claimed)
            assert json.loads((exported / "logs" / name / "report.json").read_text())[name] == report[name]
            talk = (exported / "trajs" / f"{name}.md").read_text()
            assert "I fixed the issue" in talk
            assert str(oracle.folder.parent) not in talk
        assert claimed == FOUR_IDS

    def test_junit_and_json_say_outcome_tokens_and_phases(self, oracle: BenchRun) -> None:
        cases = oracle.junit()
        assert set(cases) == {f"test_resolved[nanobot-{instance_id}]" for instance_id in FOUR_IDS}
        for case in cases.values():
            said = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
            assert said["outcome"] == "resolved"
            assert said["ending"] == "finished"
            assert int(str(said["tokens_output"])) > 0
            assert int(str(said["patch_bytes"])) > 0
            assert float(str(said["seconds_agent"])) > 0
            assert (oracle.folder / str(said["artifacts"]) / "git.patch").is_file()
        report = json.loads((oracle.folder / "report.json").read_text())
        assert report["summary"]["passed"] == 4
        assert "<title>clawbench: " in (oracle.folder / "report.html").read_text()
        assert all({"outcome": "resolved"} in test["user_properties"] for test in report["tests"])

    def test_every_case_keeps_what_it_is_attributed_to(self, oracle: BenchRun) -> None:
        for instance_id in FOUR_IDS:
            folder = oracle.case_folder(instance_id)
            manifest = json.loads((folder / "manifest.json").read_text())
            assert manifest["history"]["foreign"] == 0
            assert manifest["history"]["digest"].startswith("sha256:")
            assert manifest["claw"]["version"] == "0.3.5"
            issue = (TASK_REPO / "tasks" / instance_id / "problem_statement.md").read_bytes()
            assert issue in (folder / "prompt.txt").read_bytes()
            assert (folder / "evaluation" / "report.json").is_file()
            assert list((folder / "session").rglob("*.jsonl"))

    def test_the_claws_own_files_are_kept_and_not_in_the_patch(self, oracle: BenchRun) -> None:
        folder = oracle.case_folder(ONE_ID)
        dropped = json.loads((folder / "dropped.json").read_text())
        reasons = {row["path"]: row["reason"] for row in dropped}
        assert reasons["SOUL.md"] == "left by the claw itself"
        assert (folder / "session" / "agent_files" / "SOUL.md").is_file()
        assert "SOUL.md" not in (folder / "git.patch").read_text()
        assert "SOUL.md" in (folder / "git.patch.raw").read_text()

    def test_the_end_shows_a_table_and_the_way_there_who_did_what(self, oracle: BenchRun) -> None:
        assert re.search(r"^nanobot +100\.0% +51\.0-100\.0% +100\.0% +4 +4 +0 +0$", oracle.output, re.MULTILINE)
        assert re.search(r"^nanobot +4 +4 +0 ", oracle.output, re.MULTILINE)
        assert re.findall(r"^(\d)/4 nanobot-demo__\S+: resolved, \d+ s$", oracle.output, re.MULTILINE) == list(
            "1234"
        )

    def test_the_same_run_id_again_replays_and_runs_nothing(self, oracle: BenchRun) -> None:
        before = of_cases(oracle)
        again = run_bench(oracle.folder.parent, oracle.folder.name, "-n", "1", "-m", "demo", "-k", FOUR)
        assert again.counts == {"passed": 4}
        assert of_cases(again) == before
        assert len(again.junit()) == 4

    def test_another_setting_under_the_same_run_id_is_refused_with_the_difference(self, oracle: BenchRun) -> None:
        other = run_bench(
            oracle.folder.parent, oracle.folder.name, "-k", ONE, "--model", "scripted:noop", "--max-turns=9"
        )
        assert other.exit_code == 4
        assert "model: the run has 'scripted:oracle', this command 'scripted:noop'" in other.output
        assert "max_turns: the run has 300, this command 9" in other.output
        assert "Traceback" not in other.output


def test_a_claw_that_changes_nothing_fails_as_empty_patch(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("noop"), "-k", ONE, "--model=scripted:noop")
    assert run.counts == {"failed": 1}, run.output
    assert run.outcomes() == {ONE_ID: "empty_patch"}


def test_a_diff_that_is_only_said_is_no_patch(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("chatty"), "-k", ONE, "--model=scripted:chatty")
    assert run.outcomes() == {ONE_ID: "empty_patch"}, run.output
    assert "diff --git" in (run.case_folder(ONE_ID) / "agent_stdout.log").read_text()


def test_a_claw_that_is_not_installed_is_an_error_that_says_so_and_others_are_not_collected(
    tmp_path: Path,
) -> None:
    home = {"CLAWBENCH_HOME": str(tmp_path / "nothing")}
    run = run_bench(tmp_path, fresh_id("missing"), "-k", ONE, **home)
    assert run.counts == {"error": 1}, run.output
    assert "clawbench install nanobot" in run.output
    assert "Traceback" not in run.output
    unnamed = run_bench(tmp_path, fresh_id("unnamed"), "-k", "ledgerlite", "--collect-only", "-q", **home)
    assert "no tests" in unnamed.output


def test_some_hunks_of_several_are_unresolved_and_a_failure_is_five_lines(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("partial"), "-k", ONE, "--model=scripted:partial")
    assert run.outcomes() == {ONE_ID: "unresolved"}
    assert 0 < len(edits(run.predictions()[0]["model_patch"])) < len(edits(gold(ONE_ID)))
    shown = re.split(r"^_{5,} .* _{5,}$", run.output, flags=re.MULTILINE)[1]
    lines = [line for line in shown.partition("\n-----")[0].splitlines() if line.strip()]
    assert len(lines) <= 5
    assert lines[0].startswith("unresolved: ")
    assert lines[1].startswith("failing tests: ")
    assert lines[-1].startswith("artifacts: ")
    assert "Traceback" not in run.output


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("broken", "the provider failed ("),
        ("unauthorized", "the provider refused the key or the account ("),
        ("garbage", "the provider's answer was malformed"),
    ],
)
def test_a_broken_provider_is_an_error_though_the_claw_exits_0(tmp_path: Path, model: str, why: str) -> None:
    run = run_bench(tmp_path, fresh_id(model), "-k", ONE, f"--model=scripted:{model}")
    assert run.counts == {"error": 1}, run.output
    case = run.cases()[ONE_ID]
    assert case["outcome"] == "infrastructure"
    assert case["exit_code"] == 0
    assert why in run.output
    assert [
        entry.tag for entry in run.junit()[f"test_resolved[nanobot-{ONE_ID}]"] if entry.tag != "properties"
    ] == ["error"]
    assert run.predictions() == []


@pytest.mark.parametrize("model", ["hang", "loop"])
def test_a_claw_without_end_is_a_timeout_within_its_budget(tmp_path: Path, model: str) -> None:
    run = run_bench(tmp_path, fresh_id(model), "-k", ONE, f"--model=scripted:{model}", "--agent-timeout=3")
    assert run.outcomes() == {ONE_ID: "timeout"}, run.output
    assert containers_of(run.folder.name) == []


def test_an_agent_that_attacks_the_export_still_hands_in_exactly_its_edit(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("tamper"), "-k", ONE, "--model=scripted:tamper")
    assert run.outcomes() == {ONE_ID: "resolved"}, run.output
    assert edits(run.predictions()[0]["model_patch"]) == edits(gold(ONE_ID))


@pytest.mark.parametrize(("model", "bad", "held"), [("git", "LEAK", "NO-LEAK"), ("escape", "ESCAPE", "HELD")])
def test_an_agent_that_looks_for_the_fix_or_a_way_out_finds_nothing(
    tmp_path: Path, model: str, bad: str, held: str
) -> None:
    run = run_bench(tmp_path, fresh_id(model), "-k", ONE, f"--model=scripted:{model}")
    assert run.outcomes() == {ONE_ID: "empty_patch"}, run.output
    found = run.case_folder(ONE_ID).rglob("session/sessions/**/*.jsonl")
    session = "".join(path.read_text() for path in found)
    assert not re.search(rf"(?<![A-Z-]){bad}:", session)
    assert len(set(re.findall(rf"{held}:[\w-]+", session))) > 25, "the probes ran"
