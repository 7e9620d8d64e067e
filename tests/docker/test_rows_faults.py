"""All that can be wrong with rows, told at once and before anything is started."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.bench_run import run_bench
from support.made_up import made_up_manifest
from support.rows_world import IDS, as_json_lines, made_up, older, rows, take

from adapters.registry import installed
from demo.task_images import TASK_REPO
from evaluation.instances import InstanceError
from evaluation.lists import by_id, listed_instances
from evaluation.rows import read_row, take_rows
from records.models import RowsSource
from records.run_folder import RunDirectory, RunError

__all__ = ["rows"]


class TestFaults:
    @pytest.mark.parametrize("column", ["log_parser", "eval_type"])
    def test_what_the_installed_harness_does_not_know_is_refused(self, column: str, tmp_path: Path) -> None:
        """It would fail only while grading, after the claw was paid for."""
        row = made_up(by_id()[IDS[0]], **{column: "of_a_later_version"})
        with pytest.raises(
            InstanceError, match=f"the installed official harness knows no {column} 'of_a_later_version'"
        ):
            take(as_json_lines([row], tmp_path), tmp_path / "into", (IDS[0],))

    def test_all_faults_are_reported_at_once(self, rows: list[dict[str, Any]], tmp_path: Path) -> None:
        by = {str(row["instance_id"]): row for row in rows}
        wrong = [
            by[IDS[0]] | {"FAIL_TO_PASS": "[broken"},
            by[IDS[1]] | {"base_commit": "c" * 40},
            {name: value for name, value in by[IDS[2]].items() if name != "patch"} | {"version": None},
            by[IDS[2]],
        ]
        path = as_json_lines(wrong, tmp_path)
        with path.open("a") as file:
            file.write('{"instance_id": "cut off\n[1, 2]\n{"repo": "no id"}\n')
        with pytest.raises(InstanceError) as told:
            take(path, tmp_path / "into")
        said = str(told.value)
        assert said.splitlines()[0].startswith("7 faults") or "faults in the rows" in said.splitlines()[0]
        for expected in (
            "line 1: django__django-11790: FAIL_TO_PASS: Value error, bad JSON",
            f"line 2: sphinx-doc__sphinx-10323: base_commit is {'c' * 40}",
            "line 3: axios__axios-4731: patch: Field required; version:",
            "line 4: axios__axios-4731 is already at rows.jsonl, line 3",
            "line 5: bad JSON",
            "line 6: a row must be a mapping",
            "line 7: it has no instance_id",
            "no such row in " + str(path) + ": redis__redis-11734",
        ):
            assert expected in said, said

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"FAIL_TO_PASS": []}, "any patch would count"),
            ({"PASS_TO_PASS": "{"}, "bad JSON"),
            ({"PASS_TO_PASS": [1]}, "PASS_TO_PASS.0"),
            ({"base_commit": "main"}, "base_commit"),
            ({"patch": None}, "patch"),
            ({"repo": "another/one"}, "repo is another/one"),
            ({"eval_script": None}, "eval_script: missing"),
        ],
    )
    def test_each_kind(self, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
        path = as_json_lines([made_up(by_id()[IDS[0]], **changes)], tmp_path)
        with pytest.raises(InstanceError, match=said):
            take(path, tmp_path / "into", IDS[:1])

    def test_a_row_may_contradict_a_derived_commit(self, tmp_path: Path) -> None:
        derived = next(listed for listed in listed_instances() if listed.base_commit_from == "derived")
        path = as_json_lines([made_up(derived, base_commit="c" * 40)], tmp_path)
        take(path, tmp_path / "into", (derived.instance_id,))
        assert read_row(tmp_path / "into", derived.instance_id).base_commit == "c" * 40

    def test_rows_of_two_shapes_in_one_set(self, rows: list[dict[str, Any]], tmp_path: Path) -> None:
        path = as_json_lines([older(rows[0]), *rows[1:]], tmp_path)
        ids = tuple(
            str(row["instance_id"]) for row in rows if by_id()[str(row["instance_id"])].repo == "django/django"
        )
        with pytest.raises(InstanceError, match="two versions"):
            take(path, tmp_path / "into", ids)

    def test_json_lines_under_another_name_are_recognised(
        self, rows: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        path = as_json_lines(rows, tmp_path).rename(tmp_path / "rows.json")
        with pytest.raises(InstanceError, match=r"a file of JSON lines must end in \.jsonl"):
            take(path, tmp_path / "into")

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"FAIL_TO_PASS": "['a', 'b']"}, "a list as Python prints it"),
        ],
    )
    def test_what_other_tools_write_is_refused_with_the_reason(
        self, changes: dict[str, Any], said: str, tmp_path: Path
    ) -> None:
        row = made_up(by_id()[IDS[0]], **changes)
        with pytest.raises(InstanceError, match=said):
            take(as_json_lines([row], tmp_path), tmp_path / "into", (IDS[0],))

    @pytest.mark.parametrize("text", ["", "{}", '[{"instance_id": "a"', "[1 2"])
    def test_a_file_without_an_array_is_refused(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "rows.json"
        path.write_text(text)
        with pytest.raises(InstanceError):
            take(path, tmp_path / "into")

    @pytest.mark.parametrize("name", ["rows.txt", "rows.parquet", "empty"])
    def test_a_source_without_rows_is_refused(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / name
        if name == "empty":
            path.mkdir()
        else:
            path.write_text("nothing")
        with pytest.raises(InstanceError, match="can't be read as rows"):
            take(path, tmp_path / "into")

    def test_a_missing_path_is_not_looked_for_on_the_hub(self, tmp_path: Path) -> None:
        with pytest.raises(InstanceError, match="no such file or folder"):
            take(tmp_path / "rows.jsonl", tmp_path / "into")

    def test_a_broken_task_of_the_embedded_set_is_reported(self, tmp_path: Path) -> None:
        listed = next(listed for listed in listed_instances() if listed.embedded)
        shutil.copytree(TASK_REPO / "tasks" / listed.instance_id, tmp_path / "tasks" / listed.instance_id)
        (tmp_path / "tasks" / listed.instance_id / "tests.json").write_text("{")
        with pytest.raises(InstanceError, match=listed.instance_id):
            take_rows([listed], demo=tmp_path, into=tmp_path / "into")


def test_a_run_keeps_the_rows_that_it_began_with(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    run.path.mkdir()
    run.open(made_up_manifest())
    assert run.manifest().rows == {}
    verified = {"verified_mini": RowsSource(source="a", revision="1", harness="h")}
    run.add_rows(verified)
    run.add_rows(verified | {"multilingual": RowsSource(source="b", revision="2", harness="h")})
    assert set(run.manifest().rows) == {"verified_mini", "multilingual"}
    with pytest.raises(RunError, match=r"rows\.verified_mini\.revision: the run has '1', this command '3'"):
        run.add_rows({"verified_mini": RowsSource(source="a", revision="3", harness="h")})
    assert run.manifest().rows["verified_mini"].revision == "1"


@pytest.mark.parametrize("given", ["demo=1", "nowhere=1", "multilingual=", ""])
def test_a_malformed_revision_ends_the_command(given: str, tmp_path: Path) -> None:
    run = run_bench(tmp_path, "rows", "-k", "nanobot", f"--dataset-revision={given}")
    assert run.exit_code == 4
    assert "[SET=]REVISION" in run.output


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: run `clawbench install nanobot`")
@pytest.mark.parametrize("workers", ["0", "1"])
class TestRun:
    """Before anything is started, in this process and with workers."""

    def test_malformed_rows_end_the_command_and_no_case_has_begun(self, workers: str, tmp_path: Path) -> None:
        path = as_json_lines([made_up(by_id()[IDS[0]]) | {"FAIL_TO_PASS": "["}], tmp_path)
        run = run_bench(tmp_path, "rows", f"-n{workers}", "-k", "nanobot and 11790 or 10323", f"--dataset={path}")
        assert run.exit_code == 4, run.output
        assert "line 1: django__django-11790: FAIL_TO_PASS" in run.output
        assert "no such row in" in run.output
        assert run.output.count("FAIL_TO_PASS: Value error") == 1
        assert not (run.folder / "state.jsonl").exists()
        assert not (run.folder / ".rows").exists()
