"""`clawbench export`: what is refused, what is written, and that the official harness takes it as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from support.made_up import made_up_case, made_up_record, made_up_run, patch_of
from support.rows_world import as_json
from support.rows_world import made_up as made_up_row
from swebench.harness.reporting import make_run_report
from swebench.harness.run_evaluation import get_dataset_from_preds, load_instances
from swebench.harness.utils import get_predictions_from_file
from typer.testing import CliRunner

from clawbench.cli import app
from demo.task_images import embedded_ids
from evaluation.lists import by_id, listed_instances
from evaluation.outcomes import POLICY, Outcome
from records.case_id import CaseId
from records.predictions import write_predictions
from records.run_folder import RunDirectory
from reports.trajectory import LONGEST, trajectory

IDS = sorted(embedded_ids())
REAL = [listed.instance_id for listed in listed_instances() if listed.set_name == "multilingual"]
ROOT = Path(__file__).resolve().parents[2]


def export(run: RunDirectory, to: Path, *options: str, **variables: str) -> tuple[int, str]:
    words = ["export", str(run.path), f"--to={to}", *options]
    done = CliRunner().invoke(app, words, env=variables)
    return done.exit_code, re.sub(r"\s+", " ", done.output)


def demo_run(folder: Path, *outcomes: Outcome, sample: int = 1, **settings: object) -> RunDirectory:
    run = made_up_run(RunDirectory.named(folder, "run"), **settings)
    for instance_id, outcome in zip(IDS, outcomes, strict=False):
        made_up_case(run, CaseId("nanobot", instance_id, sample), outcome)
    write_predictions(run)
    return run


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of cases are written as at any time, but not flushed one by one."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# -- what is refused ----------------------------------------------------------------------------------


def test_all_that_a_run_lacks_is_told_at_once(tmp_path: Path) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED, Outcome.INFRASTRUCTURE, Outcome.RUN_COST_LIMIT)
    begun, changed, planned = (CaseId("nanobot", name) for name in IDS[3:6])
    made_up_case(run, begun, finish=False)
    made_up_case(run, changed).write_text("git.patch", "something else")
    run.plan.add([planned])
    code, said = export(run, tmp_path / "to", "--subset")
    assert code == 2
    for reason in (
        f"1 case ended by infrastructure: {POLICY[Outcome.INFRASTRUCTURE].meaning}: {IDS[1]}",
        f"1 case ended by run_cost_limit: {POLICY[Outcome.RUN_COST_LIMIT].meaning}: {IDS[2]}",
        f"1 case begun, but without a verdict: {begun.instance_id}",
        f"1 case whose patch is not what was exported: {changed.instance_id}",
        f"1 case not run: {planned.instance_id}",
    ):
        assert reason in said
    assert not (tmp_path / "to").exists()


def test_instances_of_the_split_that_nobody_asked_for_are_missing(tmp_path: Path) -> None:
    run = made_up_run(RunDirectory.named(tmp_path, "run"))
    made_up_case(run, CaseId("nanobot", REAL[0]))
    verified = next(listed.instance_id for listed in listed_instances() if listed.set_name == "verified_mini")
    made_up_case(run, CaseId("nanobot", verified))
    _, said = export(run, tmp_path)
    assert "has instances of several splits, choose one with --split: verified, multilingual" in said
    code, said = export(run, tmp_path, "--split=multilingual")
    assert code == 2
    assert f"299 cases never selected: {REAL[1]}" in said
    assert "and 294 more" in said
    code, said = export(run, tmp_path, "--split=verified", "--claw=nanobot")
    assert code == 2
    assert "verified has 500 instances, and the suite's lists have 50 of them; --subset writes the layout" in said
    assert export(run, tmp_path, "--split=verified", "--subset")[0] == 0
    assert "50 of the 500" not in said
    (folder,) = tmp_path.glob("*nanobot*/README.md")
    assert "**This is not a submission: it covers 1 of the 500 instances of verified.**" in folder.read_text()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "the embedded tasks are not a split of the leaderboard"),
        (["--split=lite"], "--split lite: choose from verified, multilingual, demo"),
        (["--subset", "--claw=hermes"], "has no cases of hermes: it has nanobot"),
        (["--subset", "--sample=2"], "has no sample 2 of nanobot: it has 1"),
        (["--subset", "--name=a/b"], "give the name of a new folder"),
        (["--subset", "--name=.."], "give the name of a new folder"),
    ],
)
def test_what_can_not_be_meant_is_refused_in_words(tmp_path: Path, options: list[str], why: str) -> None:
    code, said = export(demo_run(tmp_path, Outcome.RESOLVED), tmp_path / "to", *options)
    assert code == 2
    assert why in said
    assert not (tmp_path / "to").exists()


def test_what_is_no_run_and_a_run_without_the_gateway_are_refused(tmp_path: Path) -> None:
    assert "there is no run nowhere" in CliRunner().invoke(app, ["export", "nowhere", f"--to={tmp_path}"]).output
    run = demo_run(tmp_path, Outcome.RESOLVED, network="own")
    code, said = export(run, tmp_path / "to", "--subset")
    assert code == 2
    assert "made without the gateway" in said


def test_a_run_with_parts_of_the_adapter_is_no_submission(tmp_path: Path) -> None:
    code, said = export(
        demo_run(tmp_path, Outcome.RESOLVED, adapter_parts=["export"]), tmp_path / "to", "--subset"
    )
    assert code == 2
    assert "measured parts of the adapter" in said


def test_what_was_changed_afterwards_is_not_handed_out(tmp_path: Path) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.UNRESOLVED, Outcome.RESOLVED)
    changed, gone, claimed, missing = (run.case(CaseId("nanobot", name)).path / "evaluation" for name in IDS[:4])
    (changed / "test_output.txt").write_text("all tests pass\n>>>>> End Test Output\n")
    (gone / "test_output.txt").unlink()
    report = {"resolved": True, "patch_successfully_applied": True, "tests_status": {}}
    (claimed / "report.json").write_text(json.dumps({IDS[2]: report}))
    (missing / "report.json").unlink()
    code, said = export(run, tmp_path / "to", "--subset")
    assert code == 2
    assert f"nanobot-{IDS[0]}: evaluation/test_output.txt was changed after the case had ended" in said
    assert f"nanobot-{IDS[1]}: evaluation/test_output.txt is gone" in said
    assert "more" in said
    told = re.sub(r"\s+", " ", CliRunner().invoke(app, ["verify", str(run.path)]).output)
    assert "the official harness's report says resolved, metadata.json says unresolved" in told
    assert f"nanobot-{IDS[3]}: evaluation/report.json is gone" in told
    assert not (tmp_path / "to").exists()


def test_what_is_wrong_for_all_claws_is_told_once(tmp_path: Path) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED)
    made_up_case(run, CaseId("hermes", IDS[0]))
    _, said = export(run, tmp_path / "to", "--split=lite")
    assert said.count("--split lite: choose from") == 1


def test_nothing_is_ever_written_over(tmp_path: Path) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED)
    assert export(run, tmp_path / "to", "--subset", "--name=mine")[0] == 0
    before = (tmp_path / "to" / "mine" / "README.md").stat()
    code, said = export(run, tmp_path / "to", "--subset", "--name=mine")
    assert code == 2
    assert "/mine exists" in said
    assert (tmp_path / "to" / "mine" / "README.md").stat() == before
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["mine"]


def test_a_key_of_this_machine_is_never_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "providers.yaml").write_text(
        "acme:\n  base_url: https://acme.example/v1\n  apis: [chat]\n  key_env: ACME_KEY\n"
    )
    monkeypatch.setenv("CLAWBENCH_PROVIDERS", str(tmp_path / "providers.yaml"))
    run = made_up_run(RunDirectory.named(tmp_path, "run"))
    said = {"session/talk.jsonl": '{"said": "my key is xk-1234567890"}'}
    made_up_case(run, CaseId("nanobot", IDS[0]), files=said)
    code, said = export(run, tmp_path / "to", "--subset", ACME_KEY="xk-1234567890")
    assert code == 2
    assert f"trajs/{IDS[0]}.md would contain a provider's key" in said
    assert "xk-1234567890" not in said
    assert list((tmp_path / "to").iterdir()) == []


# -- what is written ----------------------------------------------------------------------------------


def test_the_layout_is_the_experiments_repositorys(tmp_path: Path) -> None:
    outcomes = (Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.EMPTY_PATCH, Outcome.APPLY_FAILED, Outcome.TIMEOUT)
    run = demo_run(tmp_path, *outcomes)
    log = {"evaluation/run_instance.log": f"read {ROOT}/x and {run.path}/y\n"}
    made_up_case(run, CaseId("nanobot", IDS[0]), files=log)
    write_predictions(run)
    assert export(run, tmp_path / "to", "--subset")[0] == 0
    folder = tmp_path / "to" / "20261130_nanobot_acme-big-1"
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    whole = {"patch.diff", "report.json", "test_output.txt", "eval.sh", "run_instance.log"}
    logs = {
        **dict.fromkeys((IDS[0], IDS[1], IDS[4]), whole),
        IDS[3]: {"patch.diff", "run_instance.log"},
    }
    assert found == {
        "README.md",
        "metadata.yaml",
        "all_preds.jsonl",
        "per_instance_details.json",
        "results/results.json",
        "results/resolved_by_repo.json",
        *(f"trajs/{name}.md" for name in IDS[:5]),
        *(f"logs/{name}/{file}" for name, files in logs.items() for file in files),
    }
    assert json.loads((folder / "results" / "results.json").read_text()) == {
        "no_generation": [IDS[2]],
        "no_logs": [IDS[3]],
        "resolved": [IDS[0]],
    }
    details = json.loads((folder / "per_instance_details.json").read_text())
    assert details[IDS[0]] == {"resolved": True, "cost": None, "api_calls": 1}
    metadata = yaml.safe_load((folder / "metadata.yaml").read_text())
    assert set(metadata) == {"info", "assets", "tags"}
    assert metadata["info"]["name"] == "nanobot 1.2.3 + acme/big-1"
    assert metadata["tags"]["model"] == ["acme/big-1"]
    assert metadata["tags"]["system"] == {"attempts": 1}
    told = (folder / "README.md").read_text()
    assert "| resolved | 1 of 5 (20.00%) |" in told
    assert told.count("- [x]") == 4
    assert (folder / "logs" / IDS[0] / "run_instance.log").read_text() == "read x and y\n"
    for path in folder.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert not any(str(place) in text for place in (ROOT, tmp_path, sys.prefix)), path


def test_the_harness_reads_predictions_as_they_are(tmp_path: Path) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED, Outcome.EMPTY_PATCH)
    export(run, tmp_path / "to", "--subset", "--name=mine")
    for path in (run.path / "nanobot" / "predictions.jsonl", tmp_path / "to" / "mine" / "all_preds.jsonl"):
        read = get_predictions_from_file(str(path), "none", "test")
        assert {row["instance_id"]: row["model_patch"] for row in read} == {
            IDS[0]: patch_of(CaseId("nanobot", IDS[0])),
            IDS[1]: "",
        }
        assert {row["model_name_or_path"] for row in read} == {"nanobot/acme/big-1"}


def test_swebench_eval_takes_the_exported_folder_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads our predictions and logs, finds nothing left to run, and reports what we report.

    This is what `swebench eval` does, but for asking the engine what containers there are: between its two
    questions those of other runs go, and it fails.
    """
    run = demo_run(tmp_path, Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.EMPTY_PATCH)
    export(run, tmp_path / "to", "--subset", "--name=mine")
    mine = tmp_path / "to" / "mine"
    rows = str(as_json([made_up_row(by_id()[name]) for name in IDS[:3]], tmp_path))
    shutil.copytree(mine / "logs", tmp_path / "logs" / "run_evaluation" / "ours" / "nanobot__acme__big-1")
    monkeypatch.chdir(tmp_path)
    read = get_predictions_from_file(str(mine / "all_preds.jsonl"), rows, "test")
    predictions = {row["instance_id"]: row for row in read}
    assert get_dataset_from_preds(rows, "test", [], predictions, "ours", rewrite_reports=False) == []
    told = json.loads(make_run_report(predictions, load_instances(rows, "test", None, None), "ours").read_text())
    ours = json.loads((mine / "results" / "results.json").read_text())
    assert told["resolved_ids"] == ours["resolved"] == [IDS[0]]
    assert told["empty_patch_ids"] == ours["no_generation"] == [IDS[2]]
    assert told["completed_ids"] == IDS[:2]


@pytest.mark.usefixtures("no_waiting_for_the_disk")
def test_a_whole_split_is_a_submission(tmp_path: Path) -> None:
    run = made_up_run(RunDirectory.named(tmp_path, "run"), network="open")
    asked = [CaseId("nanobot", name) for name in REAL]
    run.plan.add(asked)
    for number, case in enumerate(asked):
        made_up_case(run, case, Outcome.RESOLVED if number < 100 else Outcome.UNRESOLVED, plan=False)
    code, said = export(run, tmp_path, "--name=whole")
    assert code == 0, said
    folder = tmp_path / "whole"
    told = (folder / "README.md").read_text()
    assert "not a submission" not in told
    assert "| resolved | 100 of 300 (33.33%) |" in told
    assert "| split | `multilingual` (rows of `SWE-bench/SWE-bench_Multilingual`) |" in told
    assert "- [ ] TODO: the workspace had an open network" in told
    rows = [json.loads(line) for line in (folder / "all_preds.jsonl").read_text().splitlines()]
    assert [row["instance_id"] for row in rows] == sorted(REAL)
    assert len(list((folder / "trajs").iterdir())) == len(list((folder / "logs").iterdir())) == 300


def test_one_sample_is_a_submission_and_the_others_must_be_there(tmp_path: Path) -> None:
    run = made_up_run(RunDirectory.named(tmp_path, "run"))
    for sample, outcome in ((1, Outcome.RESOLVED), (2, Outcome.UNRESOLVED)):
        made_up_case(run, CaseId("nanobot", IDS[0], sample), outcome)
    assert export(run, tmp_path / "to", "--subset", "--sample=2")[0] == 0
    folder = tmp_path / "to" / "20261130_nanobot_acme-big-1_s2"
    told = (folder / "README.md").read_text()
    assert "| resolved | 0 of 1 (0.00%) |" in told
    assert "this is sample 2 of 2 independent ones" in told
    assert "| Pass@1 of all samples | 50.0% (95% interval " in told
    (row,) = [json.loads(line) for line in (folder / "all_preds.jsonl").read_text().splitlines()]
    assert row["instance_id"] == IDS[0]
    assert row["model_patch"] == patch_of(CaseId("nanobot", IDS[0], 2))
    run.plan.add([CaseId("nanobot", IDS[0], 3)])
    code, said = export(run, tmp_path / "to", "--subset", "--sample=1")
    assert code == 2
    assert f"1 case not run: {IDS[0]}-s3" in said


def test_what_a_script_did_is_told_as_what_it_is(tmp_path: Path) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED, model="scripted:oracle")
    assert export(run, tmp_path / "to", "--subset", "--name=mine")[0] == 0
    told = (tmp_path / "to" / "mine" / "README.md").read_text()
    assert "**This is not a submission: no model was used, `scripted:oracle` answered.**" in told


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("manifest.json", "{", "1 case without a complete manifest"),
        ("manifest.json", "[]", "1 case with a record that can't be understood"),
        ("metadata.json", '{"format": 1, "outcome": "splendid"}', "1 case with a record that can't be understood"),
        ("metadata.json", '{"format": 2, "outcome": "resolved"}', "1 case with a record that can't be understood"),
    ],
)
def test_records_that_are_no_records_are_told(tmp_path: Path, name: str, text: str, said: str) -> None:
    run = demo_run(tmp_path, Outcome.RESOLVED, Outcome.RESOLVED)
    (run.case(CaseId("nanobot", IDS[0])).path / name).write_text(f"{text}\n")
    code, output = export(run, tmp_path / "to", "--subset")
    assert code != 0
    assert said in output
    assert not (tmp_path / "to").exists()


# -- trajectories -------------------------------------------------------------------------------------


def test_a_trajectory_quotes_all_that_the_claw_left(tmp_path: Path) -> None:
    case = made_up_case(made_up_run(RunDirectory.named(tmp_path, "run")), CaseId("nanobot", IDS[0]))
    session = case.path / "session"
    with closing(sqlite3.connect(session / "state.db")) as connection:
        connection.execute("create table talk (role text, said text)")
        connection.execute("insert into talk values ('assistant', 'I look at the tests.')")
        connection.commit()
    (session / "long.txt").write_text("x" * (LONGEST + 1))
    (session / "notes.md").write_text("```` four\n")
    (session / "blob").write_bytes(b"\xff\x00")
    (session / "agent_files").mkdir()
    (session / "agent_files" / "SOUL.md").write_text("left in the repository")
    outside = tmp_path / "outside.txt"
    outside.write_text("of the host")
    (session / "link.txt").symlink_to(outside)
    (session / "folder").symlink_to(tmp_path)
    with case.requests.open("a") as log:
        log.write('{"status": 429, "ending": "refused", "tokens": {"input": 5}}\n{"torn')
    text = trajectory(case, made_up_record(case.id, ending="timeout", turns=3))
    assert text.startswith(f"# {IDS[0]}\n")
    assert "- ended: timeout\n" in text
    assert f"```\nSolve {IDS[0]}.\n```" in text
    assert '{"status": 429, "ending": "refused", "tokens": {"input": 5}}\n{"torn' in text
    assert "I look at the tests." in text
    assert f"The first {LONGEST:,} characters of {LONGEST + 1:,} bytes:" in text
    assert "`````\n```` four\n`````" in text
    assert "Not a text file: 2 bytes." in text
    assert "of the host" not in text
    assert "left in the repository" not in text


def test_a_damaged_database_is_no_reason_to_fail(tmp_path: Path) -> None:
    case = made_up_case(made_up_run(RunDirectory.named(tmp_path, "run")), CaseId("nanobot", IDS[0]))
    (case.path / "session" / "state.db").write_bytes(b"SQLite format 3\0" + b"\x01" * 4096)
    assert "## Session: `state.db`\n\nNot a text file: 4,112 bytes." in trajectory(case, made_up_record(case.id))
