"""Grades a run again from its saved test logs, without a container: for when the official harness's parsers changed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import demo.task_images
from evaluation.instances import Instance, load_instance
from evaluation.lists import ListedInstance, by_id, know_dataset
from evaluation.outcomes import Verdict
from evaluation.rows import read_row, take_rows
from records.case_folder import EVALUATION, CaseFolder
from records.models import CaseRecord, RunManifest
from records.run_folder import RunDirectory, RunError

_GRADED = {Verdict.RESOLVED, Verdict.UNRESOLVED}


@dataclass(frozen=True)
class Regraded:
    """A case whose tests ran, graded again."""

    case: str
    before: Verdict
    now: Verdict


def regrade(run: RunDirectory, dataset: str | None) -> Iterator[Regraded]:
    """Grade every case whose tests ran, with the installed official harness.

    Args:
        run: the run.
        dataset: the source of the rows, if it is not the one that the run recorded.

    Raises:
        InstanceError: rows can't be read.
        RunError: a row is not the one that the case was judged by, or is of the shape before swebench 5.
    """
    manifest = run.manifest()
    found = [(case, record) for case in run.cases() if (record := case.metadata()) and record.verdict in _GRADED]
    with tempfile.TemporaryDirectory(prefix="clawbench-rows-") as folder:
        rows = _rows(manifest, {case.id.instance_id for case, _ in found}, dataset, Path(folder))
        for case, record in sorted(found, key=lambda one: one[0].id):
            yield _graded(case, record, rows[case.id.instance_id])


def _rows(manifest: RunManifest, names: set[str], dataset: str | None, folder: Path) -> dict[str, Instance]:
    recorded = manifest.settings.model_extra or {}
    source = dataset or recorded.get("dataset")
    if source is not None and not names <= by_id().keys():
        from adapters.runtimes import default_home  # noqa: PLC0415 - only for a dataset of the user's own
        from evaluation.dataset_index import index_of, read_index  # noqa: PLC0415

        know_dataset(read_index(index_of(source, None, default_home() / "datasets")))
    if unknown := sorted(names - by_id().keys()):
        raise RunError(f"no instance list has {', '.join(unknown[:5])}: name the rows with --dataset")
    listed: list[ListedInstance] = [by_id()[name] for name in names]
    revisions = {name: row.revision for name, row in manifest.rows.items() if row.revision and dataset is None}
    take_rows(listed, demo=demo.task_images.TASK_REPO, into=folder, dataset=source, revisions=revisions)
    return {
        one.instance_id: load_instance(one, demo=demo.task_images.TASK_REPO)
        if one.embedded
        else read_row(folder, one.instance_id)
        for one in listed
    }


def _graded(case: CaseFolder, record: CaseRecord, row: Instance) -> Regraded:
    # swebench takes seconds to import
    from swebench.harness.grading import get_eval_report  # noqa: PLC0415
    from swebench.harness.utils import make_test_spec  # noqa: PLC0415

    manifest = case.manifest()
    if manifest is None or manifest.row_sha256 != row.digest:
        raise RunError(f"{case.id} was judged by another row: name the same rows with --dataset")
    if row.is_older:
        raise RunError(f"{case.id} has a row of the shape before swebench 5, which this can't grade")
    prediction = {"instance_id": row.instance_id, "model_name_or_path": "regraded", "model_patch": case.patch()}
    log = case.path / EVALUATION / "test_output.txt"
    spec = make_test_spec({**row.for_harness(), "image": row.image or row.instance_id})
    report = get_eval_report(spec, prediction, str(log), include_tests_status=True)[row.instance_id]
    return Regraded(str(case.id), record.verdict, Verdict.RESOLVED if report["resolved"] else Verdict.UNRESOLVED)
