"""Rows, from each format in which they come and in both generations."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.rows_world import (
    FORMATS,
    IDS,
    as_task_repo,
    made_up,
    older,
    rows,
    take,
)
from swebench.task.repo import load_task

from demo.task_images import TASK_REPO
from evaluation.instances import NEWER_COLUMNS, Instance, load_instance
from evaluation.lists import ListedInstance, by_id, listed_instances
from evaluation.rows import read_row, take_rows
from evaluation.sources import digest

__all__ = ["rows"]

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CLAWBENCH_TEST_DATA", ROOT.parent / "shared" / "data"))

needs_data = pytest.mark.skipif(
    not (DATA / "verified_mini_50_rows_v5.jsonl").is_file(),
    reason=f"no official rows in {DATA}: let CLAWBENCH_TEST_DATA name a folder that has them",
)


class TestFormats:
    @pytest.mark.parametrize("write", [*FORMATS, as_task_repo])
    def test_the_selected_rows_are_read_as_they_were_written(
        self, write: Callable[..., Path], rows: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        taken = take(write(rows, tmp_path), tmp_path / "into")
        assert {name for found in taken.values() for name in found.instances} == set(IDS)
        assert {path.stem for path in (tmp_path / "into").iterdir()} == set(IDS), "only what is selected is kept"
        written = {row["instance_id"]: row for row in rows}
        for name in IDS:
            read = read_row(tmp_path / "into", name)
            for column in ("patch", "problem_statement", "eval_script", "hints_text", "version"):
                if column == "hints_text" and write is as_task_repo:
                    continue  # it is in a file of its own there
                assert getattr(read, column) == written[name][column]
            assert read.FAIL_TO_PASS == ["one"]
        assert not any(found.is_older for found in taken.values())

    @pytest.mark.parametrize("write", FORMATS)
    def test_rows_of_the_older_shape_are_recognized(
        self, write: Callable[..., Path], rows: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        taken = take(write([older(row) for row in rows], tmp_path), tmp_path / "into")
        assert all(found.is_older for found in taken.values())
        for name in IDS:
            row = read_row(tmp_path / "into", name)
            assert row.is_older
            assert not set(NEWER_COLUMNS) & set(row.for_harness())

    def test_the_embedded_set_is_read_as_swebench_reads_it(self) -> None:
        for listed in listed_instances():
            if listed.embedded:
                row = Instance.model_validate(load_task(TASK_REPO / "tasks" / listed.instance_id))
                assert load_instance(listed, demo=TASK_REPO) == row


@needs_data
class TestOfficialRows:
    def listed(self, name: str) -> list[ListedInstance]:
        return [by_id()[json.loads(line)["instance_id"]] for line in (DATA / name).open()]

    @pytest.mark.parametrize("name", ["verified_mini_50_rows_v5.jsonl", "multilingual_5_rows_v5.jsonl"])
    def test_rows_of_the_newer_shape_are_read(self, name: str, tmp_path: Path) -> None:
        listed = self.listed(name)
        taken = take_rows(listed, demo=TASK_REPO, into=tmp_path, dataset=str(DATA / name))
        (found,) = taken.values()
        assert set(found.instances) == {instance.instance_id for instance in listed}
        assert not found.is_older

    @pytest.mark.parametrize("write", FORMATS)
    def test_rows_of_the_older_shape_are_read_from_each_format(
        self, write: Callable[..., Path], tmp_path: Path
    ) -> None:
        name = "verified_mini_50_rows_v5.jsonl"
        rows = [older(json.loads(line)) for line in (DATA / name).open()]
        taken = take_rows(
            self.listed(name), demo=TASK_REPO, into=tmp_path / "into", dataset=str(write(rows, tmp_path))
        )
        assert taken["verified_mini"].is_older
        assert len(taken["verified_mini"].instances) == 50
        assert read_row(tmp_path / "into", rows[0]["instance_id"]).patch == rows[0]["patch"]


def test_the_digest_changes_with_the_contents(tmp_path: Path) -> None:
    repo = as_task_repo([made_up(by_id()[IDS[0]])], tmp_path)
    before = digest(str(repo))
    assert before == digest(str(repo))
    (repo / "tasks" / IDS[0] / "gold.patch").write_text("other")
    assert digest(str(repo)) != before
    assert digest("SWE-bench/SWE-bench_Verified") is None
    assert digest("") is None
