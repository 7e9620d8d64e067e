"""Rows of instances, and the formats in which they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import yaml
from datasets import Dataset, DatasetDict
from pyarrow import parquet

from demo.task_images import TASK_REPO
from evaluation.instances import NEWER_COLUMNS
from evaluation.lists import ListedInstance, by_id, listed_instances
from evaluation.rows import Taken, take_rows

IDS = ("django__django-11790", "sphinx-doc__sphinx-10323", "axios__axios-4731", "redis__redis-11734")


def made_up(listed: ListedInstance, **changes: Any) -> dict[str, Any]:
    """A row of the newer shape, with the lists as JSON strings as datasets have them."""
    row = {
        "instance_id": listed.instance_id,
        "repo": listed.repo,
        "base_commit": listed.base_commit or "b" * 40,
        "problem_statement": "It fails.\u2028Always.",
        "patch": "--- a/x\r\n",
        "test_patch": "",
        "version": "1.0",
        "FAIL_TO_PASS": '["one"]',
        "PASS_TO_PASS": "[]",
        "image": "img",
        "eval_script": "true\n",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "hints_text": "x" * 20,
    }
    return row | changes


def older(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in NEWER_COLUMNS}


def as_json(rows: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows, indent=1))
    return path


def as_json_lines(rows: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def as_parquet(rows: list[dict[str, Any]], folder: Path, name: str = "rows.parquet") -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / name)
    return folder / name


def as_saved_dataset(rows: list[dict[str, Any]], folder: Path) -> Path:
    Dataset.from_list(rows).save_to_disk(str(folder / "saved"))
    return folder / "saved"


def as_saved_splits(rows: list[dict[str, Any]], folder: Path) -> Path:
    DatasetDict({"test": Dataset.from_list(rows), "dev": Dataset.from_list(rows[:1])}).save_to_disk(
        str(folder / "s")
    )
    return folder / "s"


def as_folder_of_files(rows: list[dict[str, Any]], folder: Path) -> Path:
    (folder / "hub" / "data").mkdir(parents=True)
    as_parquet(rows[:1], folder / "hub" / "data", "test-00000-of-00002.parquet")
    as_parquet(rows[1:], folder / "hub" / "data", "test-00001-of-00002.parquet")
    return folder / "hub"


def as_task_repo(rows: list[dict[str, Any]], folder: Path) -> Path:
    files = {
        "patch": "gold.patch",
        "test_patch": "test.patch",
        "eval_script": "eval.sh",
        "problem_statement": "problem_statement.md",
    }
    for row in rows:
        task = folder / "repo" / "tasks" / str(row["instance_id"])
        task.mkdir(parents=True)
        for column, name in files.items():
            (task / name).write_bytes(str(row[column]).encode())
        tests = {name: json.loads(row[name]) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
        (task / "tests.json").write_text(json.dumps(tests))
        rest = {name: value for name, value in row.items() if name not in {*files, *tests}}
        (task / "task.yaml").write_text(yaml.safe_dump(rest))
    return folder / "repo"


FORMATS = [as_json, as_json_lines, as_parquet, as_saved_dataset, as_saved_splits, as_folder_of_files]


def take(source: Path | str | None, into: Path, ids: tuple[str, ...] = IDS, **more: Any) -> dict[str, Taken]:
    selected = [by_id()[name] for name in ids]
    return take_rows(selected, demo=TASK_REPO, into=into, dataset=None if source is None else str(source), **more)


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """More rows than are selected, each a little different."""
    real = [listed for listed in listed_instances() if not listed.embedded]
    return [made_up(listed, patch=f"--- a/{number}\r\n\u00e9") for number, listed in enumerate(real)]
