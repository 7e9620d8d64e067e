"""What infrastructure broke is run again within the command: real cases, with faults put in around the claw."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError
from support.bench_run import ROOT, BenchRun, fresh_id, run_bench
from typer.testing import CliRunner

from adapters.base import BadOptionError, NotInstalledError
from adapters.registry import installed
from clawbench.cli import app
from clawbench.run.retries import Retries, pause_before
from common.errors import known_error
from evaluation.harness4 import HarnessMissingError
from evaluation.instances import InstanceError
from evaluation.judgement import EvaluationError
from workspace.workspace_errors import ExportError, ImageMissingError, PreparationError, WorkspaceError

CURED, HOPELESS, FULL = "demo__confmerge-87", "demo__cronspan-118", "demo__ledgerlite-204"

FAULTS = f"""
import errno, os
from pathlib import Path
from clawbench.pytest_plugin import attempts
from clawbench.run import agent_run, case
from evaluation.judgement import EvaluationError
from workspace.workspace_errors import WorkspaceError

judge, open_workspace = case.judge, agent_run.open_workspace
attempts.pause_before = lambda retry: 0.0

def is_first(what):
    try:
        (Path(os.environ["FAULTS"]) / what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def breaking_workspace(*arguments, **named):
    if "{CURED}" in named["name"] and is_first("workspace"):
        raise WorkspaceError("the engine is being restarted")
    if "{FULL}" in named["name"]:
        raise OSError(errno.ENOSPC, "No space left on device")
    return open_workspace(*arguments, **named)

def breaking_judge(instance, *arguments, **named):
    if instance.instance_id == "{HOPELESS}" or is_first("judge"):
        raise EvaluationError("its container went away")
    return judge(instance, *arguments, **named)

agent_run.open_workspace = breaking_workspace
case.judge = breaking_judge
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    if not installed("nanobot"):
        pytest.skip("nanobot is not installed: clawbench install nanobot")
    folder = tmp_path_factory.mktemp("faults")
    (folder / "faults.py").write_text(FAULTS)
    (folder / "told").mkdir()
    selection = ("-n", "2", "-k", "nanobot and (confmerge or cronspan or ledgerlite)")
    options = ("-p", "faults", "--infra-retries=2", "--eval-slots=2", *selection)
    variables = {"PYTHONPATH": f"{folder}:{ROOT}", "FAULTS": str(folder / "told")}
    return run_bench(folder / "artifacts", fresh_id("retries"), *options, **variables)


def journal(run: BenchRun, instance_id: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run.folder / "state.jsonl").read_text().splitlines()]
    return [row for row in rows if row.get("instance_id") == instance_id]


@pytest.mark.docker
class TestRetries:
    def test_what_can_be_cured_is_and_what_can_not_is_an_error(self, broken: BenchRun) -> None:
        assert broken.outcomes() == {CURED: "resolved", HOPELESS: "infrastructure", FULL: "infrastructure"}
        retries = {name: row["infra_retries"] for name, row in broken.cases().items()}
        assert retries == {CURED: 2, HOPELESS: 2, FULL: 0}, "a full disk is as full a moment later"

    def test_the_journal_says_why_each_attempt_was_not_the_last(self, broken: BenchRun) -> None:
        reasons = [row["why"] for row in journal(broken, CURED) if row["event"] == "retried"]
        assert reasons == ["the engine is being restarted", "its container went away"]
        assert [row["event"] for row in journal(broken, CURED)].count("begun") == 3

    def test_a_verdict_that_was_lost_asks_no_claw_again(self, broken: BenchRun) -> None:
        events = [row["event"] for row in journal(broken, HOPELESS)]
        assert events.count("exported") == 1
        assert events.count("errored") == 3

    def test_every_report_has_one_verdict_of_each_case(self, broken: BenchRun) -> None:
        assert broken.counts == {"passed": 1, "error": 2}, broken.output
        said = {name: [child.tag for child in case] for name, case in broken.junit().items()}
        assert len(said) == 3
        assert sum("error" in tags for tags in said.values()) == 2
        text = (broken.folder / "junit.xml").read_text()
        assert text.count("<testcase") == 3
        assert 'errors="2"' in text
        assert 'tests="3"' in text
        tests = json.loads((broken.folder / "report.json").read_text())["tests"]
        assert sorted(test["outcome"] for test in tests) == ["error", "error", "passed"]
        [passed] = [test for test in tests if test["outcome"] == "passed"]
        assert {"infra_retries": 2} in passed["user_properties"]

    def test_the_user_is_told(self, broken: BenchRun) -> None:
        assert "2 agents and 2 evaluations at once, in 4 workers" in broken.output
        assert "2 cases were run again after infrastructure errors, 4 times in all" in broken.output
        assert CliRunner().invoke(app, ["verify", str(broken.folder)]).exit_code == 0
        assert not list(broken.folder.glob(".retries")), "the next command counts anew"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EROFS, "Read-only file system"),
        APIError("write /var/lib/docker/x: no space left on device"),
        WorkspaceError("the container did not start: No space left on device"),
        NotInstalledError("nanobot"),
        BadOptionError("--llm-no"),
        InstanceError("no row"),
        HarnessMissingError("swebench 4"),
        PreparationError("a stray object"),
        ImageMissingError("no image"),
    ],
)
def test_a_lasting_error_is_not_retried(error: Exception) -> None:
    known = known_error(error)
    assert known is not None
    assert not known.is_retried


@pytest.mark.parametrize(
    "error",
    [
        WorkspaceError("the engine went away"),
        ExportError("the tree differs"),
        EvaluationError("no verdict"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        APIError("server error"),
    ],
)
def test_a_passing_error_is_retried(error: Exception) -> None:
    known = known_error(error)
    assert known is not None
    assert known.is_retried


def test_retries_are_counted_over_processes_and_begin_anew_with_a_command(tmp_path: Path) -> None:
    assert Retries(tmp_path).add("nanobot-x", "first") == 1
    assert Retries(tmp_path).add("nanobot-x", "second") == 2
    assert Retries(tmp_path).add("nanobot-x-s2", "other") == 1
    assert Retries(tmp_path).reasons("nanobot-x") == ["first", "second"]
    assert Retries(tmp_path).counts() == [1, 2]
    Retries(tmp_path).forget()
    assert Retries(tmp_path).counts() == []
    assert pause_before(1) < pause_before(2) < pause_before(3) < 60
