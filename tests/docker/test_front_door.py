"""What users do to the front door: odd options, selections that rule things out, signals, damaged run folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import docker
import pytest
from support.bench_run import ONE, ONE_ID, ROOT, command, containers_of, environment, fresh_id, run_bench, started
from support.made_up import made_up_export, made_up_manifest
from support.waiting import wait_for
from typer.testing import CliRunner

from adapters.base import CommandResult
from adapters.registry import installed
from clawbench.cli import app
from clawbench.run.endings import ending_of
from clawbench.run.settings import Settings
from evaluation.outcomes import Ending
from gateway.case_models import CaseCounts, CaseSpec
from gateway.open_case import Case as GatewayCase
from records.case_id import CaseId
from records.predictions import write_predictions
from records.run_folder import RunDirectory, RunError

needs_nanobot = pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install")


# -- options ------------------------------------------------------------------------------------------


@pytest.mark.docker
@pytest.mark.parametrize("option", ["--agent-timeout=inf", "--agent-timeout=1e12", "--eval-timeout=0.5"])
def test_a_time_that_can_not_be_kept_is_refused_in_a_line(tmp_path: Path, option: str) -> None:
    run = run_bench(tmp_path, fresh_id("time"), "-k", ONE, option)
    assert run.exit_code == 4, run.output
    assert option.partition("=")[0] in run.output
    assert "INTERNALERROR" not in run.output


def test_times_reach_the_workers_as_they_were_given() -> None:
    given: dict[str, Any] = {
        "run_id": "x",
        "artifacts": Path("/x"),
        "model": "scripted:oracle",
        "agent_timeout": 3600,
        "max_turns": 1,
        "llm_no": 0,
        "eval_timeout": 1.5,
        "resume": True,
        "keep_container": "never",
        "network": "gateway",
        "pids_limit": 300,
        "memory": "8g",
    }
    settings = Settings(**given)
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


def pytest_says(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder / "artifacts", "x", *arguments),
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_from_another_folder_it_says_where_to_go(tmp_path: Path) -> None:
    said = pytest_says(tmp_path, f"--rootdir={tmp_path}", str(ROOT / "tests_bench"), "-k", ONE)
    assert said.returncode == 4, said.stdout
    assert str(ROOT) in said.stdout
    assert "with '='" not in said.stdout, "every option was written so"


def test_a_folder_without_its_sign_is_told_by_its_option(tmp_path: Path) -> None:
    said = pytest_says(ROOT, "--artifacts", str(tmp_path), "-k", ONE)
    assert said.returncode == 4, said.stdout
    assert "--artifacts=" in said.stdout


@pytest.mark.docker
def test_with_no_claw_at_all_it_says_how_to_get_one(tmp_path: Path) -> None:
    variables = {"CLAWBENCH_HOME": str(tmp_path / "home")} | {
        name: "" for name in os.environ if name.endswith("_ENV_PATH")
    }
    run = run_bench(tmp_path, "x", **variables)
    if "case has an outcome" in run.output and "passed" in run.output:
        pytest.skip("this machine has a claw at its default place")
    assert run.exit_code == 4, run.output
    assert "clawbench install" in run.output
    assert not (tmp_path / "x").exists(), "nothing was run"


# -- selections ---------------------------------------------------------------------------------------


def selected(*arguments: str) -> tuple[int, int]:
    """How many embedded and how many real cases a command means."""
    done = subprocess.run(
        [*command(ROOT / "artifacts", "x"), "--collect-only", "-q", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    ids = re.findall(r"::test_resolved\[nanobot-(\S+)\]", done.stdout)
    embedded = sum(1 for name in ids if name.startswith("demo__"))
    return embedded, len(ids) - embedded


@needs_nanobot
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["-k", "nanobot and not php"], (9, 0)),
        (["-k", "nanobot and not (php or (java or rust))"], (6, 0)),
        (["-k", "nanobot", "-m", "not lite"], (10, 0)),
        (["-k", "nanobot", "-m", "not python"], (7, 0)),
        (["-k", "nanobot", "-m", "lite and not php"], (0, 70)),
        (["-k", "nanobot and django__django-11790"], (0, 1)),
        (["tests_bench/test_resolved.py::test_resolved[nanobot-django__django-11790]"], (0, 1)),
    ],
)
def test_ruling_something_out_names_no_real_instance(arguments: list[str], meant: tuple[int, int]) -> None:
    embedded, real = selected(*arguments)
    assert embedded == meant[0]
    assert (real > 0) == (meant[1] > 0)


@needs_nanobot
def test_ruling_out_one_real_instance_does_not_ask_for_the_others() -> None:
    one = "tests_bench/test_resolved.py::test_resolved[nanobot-django__django-11790]"
    assert selected("-k", "nanobot", "--deselect", one) == (10, 0)


@needs_nanobot
def test_a_claw_that_is_ruled_out_is_not_asked_for() -> None:
    embedded, real = selected("-k", "not openclaw")
    assert (embedded, real) == (10, 0)


@pytest.mark.docker
@needs_nanobot
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["-k", "nanobot and nothing_like_it"], "no case is selected by -k and -m"),
        (["-k", "nanobot and nothing_like_it", "-n", "1"], "no case is selected by -k and -m"),
        (["-k", "nanobot", "-m", "not demo"], "the embedded tasks are excluded"),
        (["-k", "nanobot", "-m", "not demo", "--collect-only"], "the embedded tasks are excluded"),
        (["-k", "nanobot and nothing_like_it", "-p", "no:junitxml"], "no case is selected"),
        (["-k", "nanobot and nothing_like_it", "-p", "no:pytest_jsonreport"], "no case is selected"),
    ],
)
def test_a_selection_of_nothing_says_why_and_leaves_nothing(tmp_path: Path, options: list[str], why: str) -> None:
    run = run_bench(tmp_path, fresh_id("nothing"), *options)
    assert run.exit_code == 5, run.output
    assert why in run.output
    assert "INTERNALERROR" not in run.output
    assert not run.folder.exists()


def test_an_engine_that_is_gone_has_an_exit_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    run = run_bench(tmp_path, fresh_id("engine"), "-k", "nanobot and cronspan")
    assert run.exit_code == 12, run.output
    assert "Docker does not answer" in run.output
    assert "Traceback" not in run.output


def test_a_run_in_which_anything_was_done_is_kept(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    with run.lock():
        run.open(made_up_manifest())
        result = run.path / "conformance" / "nanobot" / "plain" / "run.json"
        result.parent.mkdir(parents=True)
        result.write_text("{}")
        assert not run.remove_if_nothing_happened()
        shutil.rmtree(run.path / "conformance")
        assert run.remove_if_nothing_happened()
    assert not run.path.exists()


@pytest.mark.docker
@needs_nanobot
def test_a_folder_that_was_there_before_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    run = run_bench(tmp_path, "mine", "-k", "nanobot and nothing_like_it")
    assert (run.folder / "letter.txt").read_text() == "dear"


@pytest.mark.docker
@needs_nanobot
def test_a_disk_that_is_full_at_the_report_is_told_in_a_line(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("full"), "-k", "nanobot and nothing_like_it", "--junitxml=/dev/full")
    assert run.exit_code != 0
    assert "the reports could not be written: the disk is full" in run.output
    assert "Traceback" not in run.output


def test_two_runs_of_the_same_second_have_two_names() -> None:
    code = (
        "from _pytest.config import _prepareconfig; from clawbench.pytest_plugin.run_settings import settings_from; "
        "from clawbench.pytest_plugin.selection import select; config = _prepareconfig(['-k', 'nanobot']); "
        "select(config); print(*(settings_from(config)[0].run_id for _ in range(9)))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert len(set(names)) == 9
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}", name) for name in names)


# -- damaged run folders ------------------------------------------------------------------------------


def a_run(folder: Path) -> RunDirectory:
    run = RunDirectory.named(folder, "run")
    for name in ("one", "two"):
        made_up_export(run.case(CaseId("claw", name)), f"diff of {name}\n")
    return run


@pytest.mark.parametrize("damage", ["", "diff of", None])
def test_a_damaged_patch_is_no_export_and_spoils_no_other_case(tmp_path: Path, damage: str | None) -> None:
    run = a_run(tmp_path)
    patch = run.case(CaseId("claw", "one")).path / "git.patch"
    if damage is None:
        patch.unlink()
    else:
        patch.write_text(damage)
    assert run.case(CaseId("claw", "one")).export() is None
    write_predictions(run)
    rows = [json.loads(line) for line in (run.path / "predictions.jsonl").read_text().splitlines()]
    assert [row["instance_id"] for row in rows] == ["two"]


@pytest.mark.parametrize("text", ["", "\n", '{"format": 1', '{"format": 1, "outcome": "resolved"\n', "\0\0\0\0"])
def test_records_that_were_torn_are_none(tmp_path: Path, text: str) -> None:
    case = a_run(tmp_path).case(CaseId("claw", "one"))
    for name in ("export.json", "metadata.json"):
        (case.path / name).write_text(text)
    assert (case.export(), case.metadata(), case.prediction()) == (None, None, None)


@pytest.mark.parametrize("text", ["[]", '{"format": 1}', '{"format": 1, "outcome": "won"}', "7"])
def test_whole_files_that_are_no_records_are_refused_and_not_forgotten(tmp_path: Path, text: str) -> None:
    case = a_run(tmp_path).case(CaseId("claw", "one"))
    for name, read in (("export.json", case.export), ("metadata.json", case.metadata)):
        (case.path / name).write_text(text + "\n")
        with pytest.raises(RunError, match=f"{name} is not a valid record"):
            read()


@pytest.mark.parametrize(
    ("version", "whose"), [("", "an older"), ('"format": 0, ', "an older"), ('"format": 2, ', "a newer")]
)
def test_a_run_of_another_format_is_refused_in_a_sentence(tmp_path: Path, version: str, whose: str) -> None:
    run = a_run(tmp_path)
    run.manifest_path.write_text("{" + version + '"settings": {"model": "m"}, "claws": {}}\n')
    with pytest.raises(RunError, match=f"was written by {whose} clawbench") as refused:
        run.manifest()
    assert "\n" not in str(refused.value)


def test_facts_that_lost_no_more_than_their_last_byte_are_none(tmp_path: Path) -> None:
    """The journal and `files.json` vouch for every byte of them: what is taken for whole must be."""
    case = a_run(tmp_path).case(CaseId("claw", "one"))
    export = case.path / "export.json"
    assert case.export() is not None
    export.write_bytes(export.read_bytes()[:-1])
    assert case.export() is None


@pytest.mark.parametrize(
    "text", ["[]", '{"format": 1, "claws": 1, "settings": {"model": "m"}}', '{"format": 1}', "{"]
)
def test_a_manifest_of_another_shape_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    run = a_run(tmp_path)
    run.manifest_path.write_text(f"{text}\n")
    with pytest.raises(RunError, match=r"manifest\.json is (not a valid record|missing or incomplete)") as refused:
        run.open(made_up_manifest())
    assert "\n" not in str(refused.value)


@pytest.mark.docker
@needs_nanobot
def test_a_verdict_whose_patch_was_lost_or_cut_is_not_replayed(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("lost"), "-k", ONE)
    assert run.outcomes() == {ONE_ID: "resolved"}, run.output
    patch = run.case_folder(ONE_ID) / "git.patch"
    whole = patch.read_bytes()
    patch.write_bytes(whole[:200])
    (patch.parent / "metadata.json").unlink()
    again = run_bench(tmp_path, run.folder.name, "-k", ONE)
    assert again.outcomes() == {ONE_ID: "resolved"}, again.output
    assert patch.read_bytes() == whole
    patch.unlink()
    again = run_bench(tmp_path, run.folder.name, "-k", ONE)
    assert again.outcomes() == {ONE_ID: "resolved"}, again.output
    assert len(again.predictions()) == 1


# -- what broke, and whose fault it is ----------------------------------------------------------------


def test_a_refused_request_does_not_hide_what_the_provider_did(tmp_path: Path) -> None:
    case = GatewayCase(CaseSpec(case_id="x", model="scripted:broken", request_log=tmp_path / "requests.jsonl"))
    for ending in ("server_error", "refused"):
        exchange = case.begin("POST", "/v1/x")
        exchange.ending = ending  # type: ignore[assignment]
        case.finish(exchange)
    assert case.counts().last_ending == "server_error"


@pytest.mark.docker
@needs_nanobot
def test_a_forwarder_that_ends_under_the_claw_is_no_failure_of_the_claw(tmp_path: Path) -> None:
    run_id = fresh_id("forwarder")
    with started(tmp_path, run_id, "-k", ONE, "--model=scripted:slow") as process:
        wait_for(lambda: list((tmp_path / run_id).glob("*/*/requests.jsonl")))
        client = docker.from_env()
        label = {"label": f"clawbench.run={run_id}"}
        found = client.containers.list(filters=label, ignore_removed=True)
        next(one for one in found if "-forwarder" in one.name).kill()
        client.close()
        process.communicate()
    metadata = json.loads((tmp_path / run_id / "nanobot" / ONE_ID / "metadata.json").read_text())
    assert metadata["outcome"] == "infrastructure"
    assert "forwarder" in metadata["detail"]


# -- ends ---------------------------------------------------------------------------------------------


@pytest.mark.docker
@needs_nanobot
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_that_is_told_to_end_takes_its_containers_along(tmp_path: Path, workers: str) -> None:
    run_id = fresh_id("term")
    with started(tmp_path, run_id, "-n", workers, "-k", ONE, "--model=scripted:hang") as process:
        wait_for(lambda: list((tmp_path / run_id).glob("*/*/agent_stdout.log")))
        os.kill(process.pid, signal.SIGTERM)
        output, _ = process.communicate()
    assert process.returncode == 2, output
    wait_for(lambda: not containers_of(run_id))


@pytest.mark.docker
@needs_nanobot
def test_kept_workspaces_are_told_with_how_to_look_into_them(tmp_path: Path) -> None:
    run = run_bench(tmp_path, fresh_id("kept"), "-k", ONE, "--model=scripted:noop", "--keep-container=failed")
    [name] = containers_of(run.folder.name)
    client = docker.from_env()
    try:
        assert name in run.output
        assert f"docker rm -f {name}" in run.output
    finally:
        client.containers.get(name).remove(force=True)
        client.close()


@pytest.mark.parametrize("arguments", [["tasks", "check", "[/x]"], ["install", "[/red]"]])
def test_words_in_brackets_are_told_as_they_are(arguments: list[str]) -> None:
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 2, said.output
    assert arguments[-1] in said.output


# -- what a number is attributed to -------------------------------------------------------------------


@needs_nanobot
@pytest.mark.docker
def test_a_case_whose_folder_is_removed_in_mid_run_is_no_verdict(tmp_path: Path) -> None:
    run_id = fresh_id("removed")
    folder = tmp_path / run_id / "nanobot" / ONE_ID
    with started(tmp_path, run_id, "-k", ONE, "--model=scripted:slow") as process:
        wait_for((folder / "requests.jsonl").exists)
        # in one step: file by file, a new one may come in between, and the folder is never empty
        folder.rename(tmp_path / "elsewhere")
        output = process.communicate()[0]
    assert "1 error" in output.splitlines()[-1], output
    assert "was removed while the case ran" in output
    assert json.loads((folder / "metadata.json").read_text())["outcome"] == "infrastructure"


@needs_nanobot
@pytest.mark.docker
def test_a_replayed_failure_counts_for_the_first_failure_with_workers_too(tmp_path: Path) -> None:
    run_id = fresh_id("first")
    model = "--model=scripted:noop"
    assert run_bench(tmp_path, run_id, "-k", ONE, model).counts == {"failed": 1}
    again = run_bench(tmp_path, run_id, "-k", f"({ONE}) or (nanobot and hmap)", model, "-n", "2", "-x")
    assert again.exit_code == pytest.ExitCode.INTERRUPTED, again.output
    assert not (again.folder / "nanobot" / "demo__hmap-73").exists(), "no case was begun"
    [test] = json.loads((again.folder / "report.json").read_text())["tests"]
    assert {"demo", "python"} <= set(test["keywords"]), "a replayed case keeps its markers"


@needs_nanobot
@pytest.mark.docker
def test_other_rows_under_the_same_name_are_another_setting(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"instance_id": "one"}\n')
    words = ("-k", ONE, "--model=scripted:noop", f"--dataset={rows}")
    run_id = fresh_id("rows")
    assert run_bench(tmp_path, run_id, *words).counts == {"failed": 1}
    rows.write_text('{"instance_id": "other"}\n')
    again = run_bench(tmp_path, run_id, *words)
    assert again.exit_code == 4
    assert "dataset_sha256" in again.output


def test_a_claw_of_which_every_request_was_refused_has_not_finished() -> None:
    result = CommandResult(0, b"", b"", 1.0)
    ending, why = ending_of(result, CaseCounts(requests=2, last_ending="refused"))
    assert ending is Ending.AGENT_ERROR
    assert "all its requests were refused" in why
