"""Rows, from each format in which they come and in both generations."""

from __future__ import annotations

import json
import os
import re
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
from evaluation.dataset_index import index_of, read_index
from evaluation.instances import NEWER_COLUMNS, Instance, InstanceError, load_instance
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


def listed_by(path: Path, cache: Path) -> dict[str, tuple[str, str]]:
    return {
        one.instance_id: (one.set_name, one.language_group) for one in read_index(index_of(str(path), None, cache))
    }


def test_a_dataset_lists_its_own_instances_and_those_of_the_lists(tmp_path: Path) -> None:
    rows = [
        {"instance_id": "me__a-1", "repo": "me/a", "patch": "+++ b/x.rs\n+++ b/y.rs\n+++ b/z.md\n"},
        {"instance_id": "me__a-2", "repo": "me/a", "patch": "+++ b/x.zig\n"},
        {"instance_id": "redis__redis-11734", "repo": "redis/redis"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = {
        "me__a-1": ("dataset", "rust"),
        "me__a-2": ("dataset", "other"),
        "redis__redis-11734": ("multilingual", "c"),
    }
    assert listed_by(path, tmp_path / "cache") == wanted
    assert all(one.in_dataset for one in read_index(index_of(str(path), None, tmp_path / "cache")))
    path.write_text(json.dumps(rows[0]) + "\n")
    assert listed_by(path, tmp_path / "cache") == {"me__a-1": ("dataset", "rust")}, "a changed file is read again"
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "it has no row"),
        ([{"instance_id": "a-1"}, {"instance_id": "A-1"}], "line 2: A-1 is already at rows.jsonl, line 1"),
        ([{"instance_id": "a b"}], "line 1: 'a b' can't be an instance id"),
        ([{"instance_id": "../x"}], "can't be an instance id"),
        ([{"instance_id": "x-s2"}], "names samples"),
        ([{"id": "a"}], "line 1: it has no instance_id"),
    ],
)
def test_ids_that_could_not_name_a_case_are_refused_with_their_places(
    rows: list[dict[str, str]], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InstanceError, match=re.escape(told)):
        index_of(str(path), None, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
