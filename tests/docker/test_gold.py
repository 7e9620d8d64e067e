"""`clawbench gold`: whose environment is broken on this machine, and what runs make of that.

Two real instances stand for all. The image of both is an embedded task's, and so are their rows, but that the one
has a fix which fixes nothing, and the other tests which pass without any.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from support.bench_run import ROOT, environment, run_bench
from support.rows_world import as_json_lines, made_up
from support.workspace_fixtures import remove_tags

from adapters.registry import installed
from adapters.runtimes import default_home
from clawbench.run.environment_marks import Environment, GoldVerdicts, Marks
from demo.task_images import TASK_REPO, ensure_image, image_name
from evaluation.instances import load_instance
from evaluation.lists import by_id
from evaluation.outcomes import Verdict

TASK = "demo__cronspan-118"
BROKEN, LOOSE = "gin-gonic__gin-4003", "gin-gonic__gin-3741"
NOTHING = "diff --git a/NOTE b/NOTE\nnew file mode 100644\n--- /dev/null\n+++ b/NOTE\n@@ -0,0 +1 @@\n+nothing\n"


def gold(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from clawbench.cli import app; app()", "gold", *arguments],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT), **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture
def images() -> Iterator[None]:
    """The task's image under the instances' names; all that is made of it under these goes again."""
    client = docker.from_env(timeout=600)
    ensure_image(client, TASK, cache=default_home(), say=print)
    for name in (BROKEN, LOOSE):
        client.images.get(image_name(TASK)).tag(f"sweb.eval.x86_64.{name}", "latest")
    yield
    remove_tags(client, BROKEN, LOOSE)
    client.close()


def rows(folder: Path) -> Path:
    task = load_instance(by_id()[TASK], demo=TASK_REPO).model_dump(mode="json")
    names = ("base_commit", "problem_statement", "patch", "test_patch", "eval_script", "log_parser", "eval_type")

    def row(name: str, must_fail: list[str], must_pass: list[str], **changes: str) -> dict[str, Any]:
        tests = {"FAIL_TO_PASS": json.dumps(must_fail), "PASS_TO_PASS": json.dumps(must_pass)}
        return made_up(by_id()[name], version="1", **{key: task[key] for key in names}) | tests | changes

    passing = task["PASS_TO_PASS"]
    return as_json_lines(
        [row(BROKEN, task["FAIL_TO_PASS"], passing, patch=NOTHING), row(LOOSE, passing, [])], folder
    )


def test_a_mark_is_of_its_environment_alone(tmp_path: Path) -> None:
    here = Environment(TASK, "row", "sha256:image", "prepared", "swebench 5.0.2", "x86_64")
    marks = Marks(tmp_path)
    assert marks.find(here) is None
    assert marks.all() == {}
    kept = marks.keep(here, GoldVerdicts(Verdict.UNRESOLVED, Verdict.UNRESOLVED, ("test_a", "test_b")))
    assert marks.find(here) == kept
    assert kept.judged.problems == ("the gold patch is unresolved (test_a, test_b)",)
    for other in ({"row_sha256": "w"}, {"source_image": "s"}, {"harness": "swebench 4.1.0"}, {"preparation": "p"}):
        assert marks.find(Environment(**{**vars(here), **other})) is None
    assert marks.all() == {TASK: [kept]}
    next(tmp_path.rglob("*.json")).write_text("{")
    assert marks.find(here) is None, "a damaged one is none"
    (unstable,) = GoldVerdicts(Verdict.UNRESOLVED, Verdict.UNRESOLVED, ("test_a",), times=5, resolved=3).problems
    assert unstable == "the gold patch is unresolved (test_a): not stable, as it is resolved in 3 of 5 runs"
    assert GoldVerdicts(Verdict.RESOLVED, Verdict.RESOLVED).problems == ("an empty patch is resolved",)
    assert GoldVerdicts(Verdict.RESOLVED).problems == ()
    assert GoldVerdicts(Verdict.RESOLVED, Verdict.APPLY_FAILED).problems == (), "no GNU patch in the image"


@pytest.mark.docker
@pytest.mark.usefixtures("images")
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_what_is_broken_is_found_once_and_told_by_every_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "nanobot").symlink_to(default_home() / "nanobot")
    variables = {"CLAWBENCH_HOME": str(home)}
    options = (f"--artifacts={tmp_path / 'runs'}", f"--dataset={rows(tmp_path)}", "-k", "gin-4003 or gin-3741")

    # from another folder than the suite's, as users may
    code, output = gold(tmp_path, "-n2", *options, "--run-id=first", **variables)
    assert code == 1, output
    assert "2 failed" in output
    assert "the gold patch is unresolved (tests/" in output
    assert "an empty patch is resolved" in output
    assert "0 of 2 environments are sound" in output
    assert "were judged before" not in output
    first = tmp_path / "runs" / "first"
    assert (first / "junit.xml").exists()
    assert (first / "gold" / BROKEN / "gold" / "test_output.txt").exists()
    assert "Traceback" not in output

    shutil.rmtree(first)
    code, output = gold(tmp_path, *options, "--run-id=second", **variables)
    assert code == 1, output
    assert "the official harness" not in output, "it is known, and not judged again"
    assert "2 of them were judged before" in output
    assert not (tmp_path / "runs" / "second" / "gold" / BROKEN / "gold").exists()

    only = (f"--dataset={rows(tmp_path)}", "-k", BROKEN)
    run = run_bench(tmp_path / "runs", "run", *only, **variables)
    before = (run.folder / "junit.xml").read_bytes()
    code, output = gold(tmp_path, *options, "--run-id=run", **variables)
    assert code == 2, output
    assert "run run has cases of claws" in output
    assert (run.folder / "junit.xml").read_bytes() == before
    assert run.outcomes() == {BROKEN: "unresolved"}, run.output
    assert run.counts == {"failed": 1}, "gold's own case is none of a run's"
    assert "WARNING: 1 of the selected instances are broken on this machine" in run.output
    assert "WARNING: 1 of 1 cases have a broken environment" in run.output
    noted = json.loads((run.folder / "manifest.json").read_text())["gold"]
    assert list(noted) == [BROKEN]
    case = json.loads((run.case_folder(BROKEN) / "manifest.json").read_text())
    assert case["gold"]["gold"] == "unresolved"
    assert run.cases()[BROKEN]["environment_problems"] == case["gold"]["problems"] == noted[BROKEN]["problems"]

    for path in (home / "gold").iterdir():
        path.unlink()
    mended = run_bench(run.folder.parent, "run", *only, **variables)
    assert "WARNING: 1 of the selected" not in mended.output
    assert json.loads((run.folder / "manifest.json").read_text())["gold"] == {}
