"""Runs on rows that look like official ones, in both generations; tests/unit/test_rows.py has every format.

The images of the real instances are not to be had everywhere, so an embedded task's image stands under the name of
a real instance whose base commit is not known, and the row is that task's under the instance's id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from support.bench_run import run_bench
from support.rows_world import as_json_lines, as_parquet, as_task_repo, made_up, older
from support.workspace_fixtures import remove_tags

from adapters.registry import installed
from adapters.runtimes import default_home
from demo.task_images import TASK_REPO, ensure_image, image_name
from evaluation import harness4
from evaluation.harness4 import HarnessMissingError
from evaluation.instances import load_instance
from evaluation.lists import by_id

TASK = "demo__cronspan-118"
VERSION = "3820"
ID = f"gin-gonic__gin-{VERSION}"
"""For no other tests: what is used beside could not be removed at the end."""

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    connected = docker.from_env(timeout=600)
    yield connected
    connected.close()


@pytest.fixture(scope="module", autouse=True)
def image(client: docker.DockerClient) -> Iterator[None]:
    """The task's image under the instance's name; all that is made of it under that name goes again."""
    assert not by_id()[ID].base_commit
    ensure_image(client, TASK, cache=default_home(), say=print)
    client.images.get(image_name(TASK)).tag(f"sweb.eval.x86_64.{ID}", "latest")
    yield
    remove_tags(client, ID)


@pytest.fixture(scope="module")
def row() -> dict[str, Any]:
    """The task's row under the instance's id."""
    task = load_instance(by_id()[TASK], demo=TASK_REPO).model_dump(mode="json")
    tests = {name: json.dumps(task[name]) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    names = ("base_commit", "problem_statement", "patch", "test_patch", "eval_script", "log_parser", "eval_type")
    return made_up(by_id()[ID], version=VERSION, **{name: task[name] for name in names}) | tests


@pytest.mark.parametrize(("write", "workers"), [(as_parquet, "0"), (as_task_repo, "1")])
def test_rows_of_swebench_5(write: Callable[..., Path], workers: str, row: dict[str, Any], tmp_path: Path) -> None:
    path = write([row | {"instance_id": "axios__axios-4731"}, row], tmp_path)
    run = run_bench(tmp_path, "rows", f"-n{workers}", "-k", f"nanobot and {ID}", f"--dataset={path}")
    assert run.outcomes() == {ID: "resolved"}, run.output
    rows = json.loads((run.folder / "manifest.json").read_text())["rows"]
    assert rows["multilingual"]["source"] == str(path)
    assert rows["multilingual"]["harness"].startswith("swebench 5.")
    case = json.loads((run.case_folder(ID) / "manifest.json").read_text())
    assert case["harness"].startswith("swebench 5.")
    assert case["base_commit"] == row["base_commit"]


def test_rows_before_swebench_5(row: dict[str, Any], tmp_path: Path) -> None:
    try:
        version = harness4.find(default_home()).harness
    except HarnessMissingError as error:
        pytest.skip(str(error))
    path = as_json_lines([older(row | {"instance_id": "axios__axios-4731"}), older(row)], tmp_path)
    run = run_bench(tmp_path, "rows", "-n0", "-k", f"nanobot and {ID}", f"--dataset={path}")
    # that version's own script for the repository runs Go tests, and the image has no Go
    assert run.outcomes() == {ID: "unresolved"}, run.output
    assert json.loads((run.case_folder(ID) / "manifest.json").read_text())["harness"] == version
    assert json.loads((run.folder / "manifest.json").read_text())["rows"]["multilingual"]["harness"] == version
    assert "go test" in (run.case_folder(ID) / "evaluation" / "test_output.txt").read_text()


def test_rows_that_the_older_harness_does_not_know_end_the_command(row: dict[str, Any], tmp_path: Path) -> None:
    path = as_json_lines([older(row) | {"version": "0"}], tmp_path)
    run = run_bench(tmp_path, "rows", "-k", f"nanobot and {ID}", f"--dataset={path}")
    assert run.exit_code == 4
    assert "swebench4" in run.output or "knows neither" in run.output
    assert not (run.folder / "state.jsonl").exists()
