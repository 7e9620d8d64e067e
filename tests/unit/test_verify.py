"""`clawbench verify`: a run that nobody touched is sound, and whatever was done to one afterwards is found out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from support.bench_run import ROOT
from support.made_up import made_up_case, made_up_record, made_up_run
from typer.testing import CliRunner

from clawbench.cli import app
from clawbench.pytest_plugin.reporting import shortened
from clawbench.run.usage import model_use, use_in
from evaluation.outcomes import Outcome
from gateway.tally import Tally
from records.case_folder import CaseFolder
from records.case_id import CaseId
from records.models import CaseRecord, ExportRecord
from records.predictions import write_predictions
from records.run_folder import RunDirectory
from records.verification import Verification, verify_run
from tests.long.rehearsal.stage import Stage, rehearsed


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A real command on five cases with four samples each, but for the engine."""
    made = rehearsed(tmp_path_factory.mktemp("stage"), 5, 2, seed=3, breaks=0.0)
    done = subprocess.run(
        [*made.command(), "--samples=4"],
        cwd=ROOT,
        env=dict(made.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    return made


@pytest.fixture
def run(stage: Stage, tmp_path: Path) -> RunDirectory:
    """A copy to do harm to."""
    return RunDirectory(Path(shutil.copytree(stage.run.path, tmp_path / stage.run.run_id, symlinks=True)))


def edit(path: Path, change: Callable[[Any], None]) -> None:
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held, indent=2) + "\n")


def record_of(case: CaseFolder) -> CaseRecord:
    record = case.metadata()
    assert record is not None
    return record


def resolved(run: RunDirectory) -> CaseFolder:
    return next(case for case in run.cases() if record_of(case).outcome == "resolved")


def unresolved(run: RunDirectory) -> CaseFolder:
    return next(case for case in run.cases() if record_of(case).outcome == "unresolved")


def faults(found: Verification) -> str:
    return "\n".join(map(str, found.faults))


def test_what_nobody_touched_is_sound(stage: Stage) -> None:
    found = verify_run(stage.run, use_in)
    assert found.is_sound, faults(found)
    assert (found.ended, found.planned) == (20, 20)
    assert found.files > 100
    assert found.notes == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-m", "dmeo"], 4, "Unknown marker(s) in '-m' expression: dmeo (did you mean demo?)"),
        (["-k", "nanobot and"], 4, "Wrong expression passed to '-k': nanobot and: at column 12"),
        (["-k", "nothing_like_it"], 5, "no case is selected"),
    ],
)
def test_a_command_that_selects_nothing_changes_nothing(
    stage: Stage, words: list[str], code: int, message: str
) -> None:
    """The reports of the command before stay, and so do the plan and the journal."""
    before = {path: path.read_bytes() for path in stage.run.path.rglob("*") if path.is_file()}
    done = subprocess.run(
        [*stage.command(), "--samples=4", *words],
        cwd=ROOT,
        env=dict(stage.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode, message in done.stdout) == (code, True), done.stdout
    assert {path: path.read_bytes() for path in stage.run.path.rglob("*") if path.is_file()} == before


def test_the_result_is_below_the_failures(stage: Stage) -> None:
    done = subprocess.run(
        [*stage.command(), "--samples=4"],
        cwd=ROOT,
        env=dict(stage.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    places = [
        done.stdout.index(text) for text in ("= FAILURES", "= short test summary info", "Pass@1", "artifacts: ")
    ]
    assert places[:3] == sorted(places[:3])
    assert done.stdout.rindex("artifacts: ") > places[2]


def test_a_long_list_of_failures_is_cut(run: RunDirectory) -> None:
    lines: list[str] = []
    stats = {"failed": list(range(300)), "error": list(range(3)), "passed": list(range(30))}
    terminal: Any = SimpleNamespace(stats=dict(stats), write_line=lines.append)
    with shortened(terminal, "nightly"):
        assert [len(terminal.stats[kind]) for kind in stats] == [20, 3, 30]
    assert terminal.stats == stats
    assert lines == ["and 280 more: `clawbench status nightly --cases` lists all cases"]
    said = CliRunner().invoke(app, ["status", str(run.path), "--cases"]).output.splitlines()
    assert len(said) == len(run.plan.cases())
    assert {line.split("\t")[1] for line in said} >= {"resolved", "unresolved"}
    told = json.loads(CliRunner().invoke(app, ["status", str(run.path), "--cases", "--json"]).output)
    assert [line.split("\t")[:2] for line in said] == [[name, one["outcome"]] for name, one in told.items()]


def test_the_copy_is_as_sound_as_the_run(run: RunDirectory) -> None:
    assert verify_run(run, use_in).is_sound


# -- a case -------------------------------------------------------------------------------------------------------


def another_patch(run: RunDirectory) -> str:
    path = unresolved(run).path / "git.patch"
    path.write_text(path.read_text().replace("+", "+ ", 1))
    return "git.patch was changed after the case had ended"


def another_patch_with_its_digest(run: RunDirectory) -> str:
    case = unresolved(run)
    (case.path / "git.patch").write_text("diff --git a/x b/x\n")
    digest = sha256((case.path / "git.patch").read_bytes()).hexdigest()
    for name in ("export.json", "metadata.json"):
        edit(case.path / name, lambda held: held.update(patch_sha256=digest))
    return "metadata.json does not match the journal's digest"


def another_outcome(run: RunDirectory) -> str:
    edit(unresolved(run).path / "metadata.json", lambda held: held.update(outcome="resolved"))
    return "outcome resolved does not follow from ending"


def another_verdict_as_well(run: RunDirectory) -> str:
    edit(
        unresolved(run).path / "metadata.json",
        lambda held: held.update(outcome="resolved", verdict="resolved", failing_tests=[]),
    )
    return "the official harness's report says unresolved, metadata.json says resolved"


def another_report_too(run: RunDirectory) -> str:
    case = unresolved(run)
    edit(
        case.path / "metadata.json",
        lambda held: held.update(outcome="resolved", verdict="resolved", failing_tests=[]),
    )
    report = case.path / "evaluation" / "report.json"
    edit(report, lambda held: held[case.id.instance_id].update(resolved=True, tests_status={}))
    return "evaluation/report.json was changed after the case had ended"


def all_of_that_with_digests(run: RunDirectory) -> str:
    """All but the journal."""
    another_report_too(run)
    case = unresolved_before(run)
    listed = json.loads((case.path / "files.json").read_text())
    report = (case.path / "evaluation" / "report.json").read_bytes()
    listed["evaluation/report.json"] = {"size": len(report), "sha256": sha256(report).hexdigest()}
    text = json.dumps(listed).encode()
    (case.path / "files.json").write_bytes(text)
    edit(case.path / "metadata.json", lambda held: held.update(files_sha256=sha256(text).hexdigest()))
    return "metadata.json does not match the journal's digest"


def unresolved_before(run: RunDirectory) -> CaseFolder:
    """The case that was unresolved when its log was written."""
    return next(
        case
        for case in run.cases()
        if (case.path / "evaluation" / "report.json").exists()
        and json.loads((case.path / "evaluation" / "report.json").read_text())[case.id.instance_id].get(
            "tests_status"
        )
        == {}
        and record_of(case).failing_tests == ()
        and record_of(case).outcome == "resolved"
    )


def a_report_alone(run: RunDirectory) -> str:
    case = resolved(run)
    edit(case.path / "evaluation" / "report.json", lambda held: held[case.id.instance_id].update(resolved=False))
    return "the official harness's report says unresolved"


def fewer_requests(run: RunDirectory) -> str:
    path = resolved(run).requests
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    return "requests.jsonl adds up to requests"


def another_models_manifest(run: RunDirectory) -> str:
    edit(resolved(run).path / "manifest.json", lambda held: held["settings"].update(model="acme/big"))
    return "its manifest has model 'acme/big', the run's has 'scripted:oracle'"


def another_prompt(run: RunDirectory) -> str:
    edit(resolved(run).path / "manifest.json", lambda held: held.update(prompt_template_sha256="0" * 64))
    return "its manifest has prompt's digest"


def another_cases_folder(run: RunDirectory) -> str:
    good, bad = resolved(run), unresolved(run)
    shutil.rmtree(bad.path)
    shutil.copytree(good.path, bad.path)
    return f"metadata.json has claw {good.id.claw}"


def another_sample(run: RunDirectory) -> str:
    case = next(case for case in run.cases() if case.id.sample == 2)
    shutil.rmtree(case.path)
    shutil.copytree(run.case(CaseId(case.id.claw, case.id.instance_id)).path, case.path)
    return "metadata.json has sample 1"


def no_folder(run: RunDirectory) -> str:
    shutil.rmtree(unresolved(run).path)
    return "according to the journal it is finished, but its folder is gone"


def no_outcome(run: RunDirectory) -> str:
    """As one would to have another try, and keep the better one."""
    (unresolved(run).path / "metadata.json").unlink()
    return "according to the journal it is finished, but its metadata.json is gone"


def no_log(run: RunDirectory) -> str:
    (resolved(run).path / "agent_stdout.log").unlink()
    return "agent_stdout.log is gone"


def no_patch_of_one_that_was_not_judged(run: RunDirectory) -> str:
    case = next(case for case in run.cases() if record_of(case).verdict == "not_judged")
    (case.path / "git.patch").unlink()
    return f"{case.id.claw}-{case.path.name}: git.patch is gone"


def one_more_file(run: RunDirectory) -> str:
    (resolved(run).path / "session" / "better.jsonl").write_text("{}\n")
    return "session/better.jsonl does not belong to the case"


def no_digests(run: RunDirectory) -> str:
    (resolved(run).path / "files.json").unlink()
    return "files.json is missing or incomplete"


def digests_that_are_none(run: RunDirectory) -> str:
    (resolved(run).path / "files.json").write_text("[]")
    return "files.json is missing or incomplete"


def nonsense(run: RunDirectory) -> str:
    edit(resolved(run).path / "metadata.json", lambda held: held.update(verdict=["resolved"]))
    return "metadata.json is not a valid record (verdict: "


# -- the run ------------------------------------------------------------------------------------------------------


def another_manifest(run: RunDirectory) -> str:
    edit(run.manifest_path, lambda held: held["settings"].update(model="acme/big"))
    return "manifest.json: it does not match the journal's digest"


def a_case_taken_out_whole(run: RunDirectory) -> str:
    """Out of everything but the journal's other lines."""
    case = unresolved(run)
    shutil.rmtree(case.path)

    def without(held: dict[str, Any]) -> None:
        for group in held["planned"]:
            if (group["claw"], group["sample"]) == (case.id.claw, case.id.sample):
                group["instance_ids"].remove(case.id.instance_id)

    edit(run.plan.path, without)
    lines = run.journal.path.read_text().splitlines(keepends=True)
    mine = f'"claw": "{case.id.claw}", "instance_id": "{case.id.instance_id}", "sample": {case.id.sample},'
    run.journal.path.write_text("".join(line for line in lines if mine not in line))
    return "plan.json: it does not match the journal's digest"


def a_case_nobody_asked_for(run: RunDirectory) -> str:
    case = resolved(run)
    shutil.copytree(case.path, case.path.with_name("acme__extra-1"))
    return "it is not in plan.json"


def no_plan(run: RunDirectory) -> str:
    run.plan.path.unlink()
    return "plan.json: it is gone"


def a_line_of_the_journal_less(run: RunDirectory) -> str:
    lines = run.journal.path.read_text().splitlines(keepends=True)
    run.journal.path.write_text("".join(lines[:9] + lines[10:]))
    return "state.jsonl: something was removed, inserted or changed before line 10"


def a_journal_without_its_chain(run: RunDirectory) -> str:
    rows = [json.loads(line) for line in run.journal.path.read_text().splitlines()]
    lines = [json.dumps({name: value for name, value in row.items() if name != "prev"}) for row in rows]
    run.journal.path.write_text("\n".join(lines) + "\n")
    assert len([fault for fault in verify_run(run, use_in).faults if fault.where == "state.jsonl"]) == 1
    return "something was removed, inserted or changed before lines 1, 2, "


def no_journal(run: RunDirectory) -> str:
    run.journal.path.unlink()
    return "state.jsonl: there is no journal"


def a_journal_that_ends_early(run: RunDirectory) -> str:
    lines = run.journal.path.read_text().splitlines(keepends=True)
    run.journal.path.write_text("".join(lines[:40]))
    return "has an outcome that the journal does not know"


def another_prediction(run: RunDirectory) -> str:
    path = run.path / "amber" / "predictions.jsonl"
    path.write_text(path.read_text().replace('"model_patch": "', '"model_patch": "# ', 1))
    return "amber/predictions.jsonl: from row 1 on it differs from the cases' folders"


def a_prediction_less(run: RunDirectory) -> str:
    path = run.path / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    return "predictions.jsonl: from row"


def another_junit(run: RunDirectory) -> str:
    path = run.path / "junit.xml"
    path.write_text(path.read_text().replace("failure", "success"))
    return "junit.xml: it was changed after the last command"


ATTACKS = [
    another_patch,
    another_patch_with_its_digest,
    another_outcome,
    another_verdict_as_well,
    another_report_too,
    all_of_that_with_digests,
    a_report_alone,
    fewer_requests,
    another_models_manifest,
    another_prompt,
    another_cases_folder,
    another_sample,
    no_folder,
    no_outcome,
    no_log,
    no_patch_of_one_that_was_not_judged,
    one_more_file,
    no_digests,
    digests_that_are_none,
    nonsense,
    another_manifest,
    a_case_taken_out_whole,
    a_case_nobody_asked_for,
    no_plan,
    a_line_of_the_journal_less,
    no_journal,
    a_journal_without_its_chain,
    a_journal_that_ends_early,
    another_prediction,
    a_prediction_less,
    another_junit,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_what_was_done_afterwards_is_found_out(run: RunDirectory, attack: Callable[[RunDirectory], str]) -> None:
    expected = attack(run)
    found = verify_run(run, use_in)
    assert expected in faults(found)
    for fault in found.faults:
        assert len(str(fault).splitlines()) == 1
        assert str(fault).endswith(".")


def test_a_claw_that_asked_the_model_nothing_is_sound(tmp_path: Path) -> None:
    """The gateway's sums of no request are those of a request log that was never written."""
    run = made_up_run(RunDirectory(tmp_path / "r"))
    asked_nothing = model_use(Tally().counts((), 0.0), None, has_price=False)
    case = made_up_case(run, CaseId("nanobot", "demo__x-1"), Outcome.EMPTY_PATCH, finish=False)
    case.requests.unlink()
    export = case.export()
    assert export is not None
    facts = export.model_dump() | asked_nothing.model_dump()
    case.keep_export(ExportRecord.model_validate(facts), "", "", [])
    run.finish(case, made_up_record(case.id, **facts, outcome=Outcome.EMPTY_PATCH))
    write_predictions(run)
    assert verify_run(run, use_in).faults == []


def test_a_half_written_file_and_a_torn_line_are_told_and_no_fault(run: RunDirectory) -> None:
    (resolved(run).path / ".git.patch.abcdefgh.half").write_text("half")
    (run.path / ".manifest.json.abcdefgh.half").write_text("half")
    (run.path / "notes.txt").write_text("mine")
    with run.journal.path.open("ab") as file:
        file.write(b'{"time": "2026-')
    found = verify_run(run, use_in)
    assert found.is_sound, faults(found)
    said = "\n".join(found.notes)
    assert "a kill left .git.patch.abcdefgh.half half-written" in said
    assert "a kill left .manifest.json.abcdefgh.half half-written" in said
    assert "incomplete lines are skipped (line " in said
    assert "notes.txt does not belong to the run" in said


def test_predictions_may_be_older_where_the_controller_was_killed(run: RunDirectory) -> None:
    lines = run.journal.path.read_text().splitlines(keepends=True)
    assert json.loads(lines[-1])["event"] == "ended"
    run.journal.path.write_text("".join(lines[:-1]))
    for path in run.path.rglob("predictions*.jsonl"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:1]))
    found = verify_run(run, use_in)
    assert found.is_sound, faults(found)
    assert "predictions.jsonl is older than the cases' folders; the next command rewrites it" in found.notes


def clawbench(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_the_command_ends_with_what_it_found(run: RunDirectory) -> None:
    done = clawbench("verify", run.run_id, "--artifacts", str(run.path.parent))
    assert done.exit_code == 0, done.stdout
    assert "20 of 20 planned cases have a verdict" in done.stdout
    assert f"sha256:{run.journal.read().head}" in done.stdout
    case = unresolved(run)
    another_patch(run)
    done = clawbench("verify", str(run.path))
    assert done.exit_code == 1
    assert f"FAULT {case.id.claw}-{case.path.name}: git.patch was changed" in done.stdout
    assert (
        f"--no-resume and 'tests_bench/test_resolved.py::test_resolved[{case.id.claw}-{case.path.name}]'"
        in done.stdout
    )
    told = json.loads(clawbench("verify", str(run.path), "--json").stdout)
    assert not told["is_sound"]
    assert told["faults"][0]["where"] == f"{case.id.claw}-{case.path.name}"
    done = clawbench("verify", "nothing-like-it", "--artifacts", str(run.path.parent))
    assert done.exit_code == 2
    assert "there is no run nothing-like-it" in done.stdout


def test_a_name_that_is_no_text_is_told_like_any_other(run: RunDirectory) -> None:
    (unresolved(run).path / os.fsdecode(b"caf\xe9")).write_text("")
    done = clawbench("verify", str(run.path))
    assert (done.exit_code, done.exception.__class__) == (1, SystemExit)
    assert "caf\\udce9" in done.stdout
