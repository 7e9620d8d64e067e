"""Writes a submission's folder in the layout of the SWE-bench experiments repository, completely or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from records.files import RunError
from records.models import CaseRecord
from records.places import without_places
from reports.submission import Finished, Submission, dataset_of
from reports.summary import share_with_interval
from reports.trajectory import trajectory

_LOGS = ("patch.diff", "report.json", "test_output.txt", "eval.sh", "run_instance.log")
"""The files of the official harness for an instance, copied unchanged as evidence, except the last one: it is
written on this machine, not in a container."""
_ON_THIS_MACHINE = "run_instance.log"


def export(
    submission: Submission,
    to: Path,
    name: str | None = None,
    *,
    places: dict[Path, str],
    is_secret: Callable[[bytes], bool],
) -> Path:
    """Write a submission's folder.

    Args:
        submission: what to write.
        to: the parent of the new folder.
        name: the name of the new folder; None for `Submission.default_name`.
        places: folders of this machine, with their replacements in texts.
        is_secret: whether bytes contain a key of this machine.

    Returns:
        the new folder.

    Raises:
        RunError: the folder exists, its name is invalid, or a file would contain a key.
        OSError: something can't be read or written.
    """
    target = target_of(submission, to, name)
    to.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=to, prefix=f".{target.name}."))
    try:
        _write(submission, scratch, target.name, places)
        _refuse_secrets(scratch, is_secret)
        scratch.chmod(0o755)
        scratch.rename(target)  # fails if the folder was created meanwhile and is not empty
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return target


def target_of(submission: Submission, to: Path, name: str | None) -> Path:
    """The folder that a submission would be written to.

    Raises:
        RunError: the folder exists, or its name is invalid.
    """
    name = name or submission.default_name
    if name in {".", ".."} or Path(name).name != name:
        raise RunError(f"--name {name}: give the name of a new folder, without a path")
    if (to / name).exists():
        raise RunError(f"{to / name} exists; choose another folder with --to, or a name with --name")
    return to / name


def _write(submission: Submission, folder: Path, name: str, places: dict[Path, str]) -> None:
    predictions = [case.folder.prediction() for case in submission.cases]
    rows = "".join(f"{json.dumps(row)}\n" for row in predictions)
    (folder / "all_preds.jsonl").write_text(rows, "utf-8")
    (folder / "trajs").mkdir()
    for case in submission.cases:
        text = without_places(trajectory(case.folder, case.record), places)
        path = folder / "trajs" / f"{case.folder.id.instance_id}.md"
        path.write_text(text, "utf-8", "replace")
        if case.has_patch:
            _copy_logs(case, folder / "logs" / case.folder.id.instance_id, places)
    for file, value in _results(submission).items():
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value, indent=4) + "\n", "utf-8")
    (folder / "metadata.yaml").write_text(_metadata(submission), "utf-8")
    (folder / "README.md").write_text(_readme(submission, name), "utf-8")


def _copy_logs(case: Finished, folder: Path, places: dict[Path, str]) -> None:
    folder.mkdir(parents=True)
    for name in _LOGS:
        source = case.folder.path / "evaluation" / name
        if name == "patch.diff":
            # the patch that was judged is the prediction, whatever the harness kept
            (folder / name).write_bytes(case.folder.patch().encode())
        elif name == _ON_THIS_MACHINE and source.is_file():
            text = source.read_text("utf-8", "surrogateescape")
            (folder / name).write_text(without_places(text, places), "utf-8", "surrogateescape")
        elif source.is_file():
            shutil.copyfile(source, folder / name)


def _results(submission: Submission) -> dict[str, Any]:
    """The files of results, as the scripts of the experiments repository write them."""
    by_repo: dict[str, dict[str, int]] = {}
    for case in submission.cases:
        counts = by_repo.setdefault(case.manifest.repo, {"resolved": 0, "total": 0})
        counts["total"] += 1
        counts["resolved"] += case.is_resolved
    return {
        "results/results.json": {
            "no_generation": [case.folder.id.instance_id for case in submission.cases if not case.has_patch],
            "no_logs": [
                case.folder.id.instance_id
                for case in submission.cases
                if case.has_patch and not case.has_test_output
            ],
            "resolved": [case.folder.id.instance_id for case in submission.cases if case.is_resolved],
        },
        "results/resolved_by_repo.json": dict(sorted(by_repo.items())),
        "per_instance_details.json": {
            case.folder.id.instance_id: {
                "resolved": case.is_resolved,
                "cost": _cost(case.record),
                "api_calls": case.record.requests,
            }
            for case in submission.cases
        },
    }


def _cost(record: CaseRecord) -> float | None:
    """US dollars by the price table; None if a part of it is unknown."""
    cost = record.cost
    return float(cost.priced) if cost is not None and cost.priced is not None and not cost.unpriced else None


def _metadata(submission: Submission) -> str:
    name = f"{submission.numbers.agent_label} {submission.version} + {submission.model}"
    facts = {"name": name, "model": submission.model, "agent": submission.claw}
    # a JSON string is a YAML string
    return _filled("submission_metadata.yaml", {key: json.dumps(value) for key, value in facts.items()})


def _filled(name: str, values: Mapping[str, str]) -> str:
    return Template((Path(__file__).parent / name).read_text("utf-8")).substitute(values)


def _readme(submission: Submission, name: str) -> str:
    """The page about the submission. Its checklist is the experiments repository's."""
    browsing = "- [x] Does not have web-browsing: the workspace can reach nothing but the model's endpoint"
    if submission.manifest.settings.network != "gateway":
        browsing = (
            "- [ ] TODO: the workspace had an open network; say what kept the agent from looking up solutions"
        )
    repos = _results(submission)["results/resolved_by_repo.json"].items()
    values = {
        "name": name,
        "notice": _notice(submission),
        "facts": "\n".join(f"| {key} | {value} |" for key, value in _facts(submission).items()),
        "browsing": browsing,
        "by_repo": "\n".join(f"- {repo}: {counts['resolved']}/{counts['total']}" for repo, counts in repos),
    }
    return _filled("submission_readme.md", values)


def _notice(submission: Submission) -> str:
    cases, split = submission.cases, submission.split
    if not submission.has_model:
        return f"**This is not a submission: no model was used, `{submission.model}` answered.**\n\n"
    if submission.is_whole:
        return ""
    of = f"{len(cases)} of the {split.size} instances of {split.name}" if split.name else "the embedded tasks"
    return f"**This is not a submission: it covers {of}.** Only the layout is that of a submission.\n\n"


def _facts(submission: Submission) -> dict[str, str]:
    cases, split, samples = submission.cases, submission.split, submission.numbers.samples
    resolved = sum(case.is_resolved for case in cases)
    facts = {
        "split": f"`{split.title}` (rows of `{dataset_of(split)}`{_rows_of(submission)})",
        "agent": f"{submission.numbers.agent_label} {submission.version}",
        "model": f"`{submission.model}`",
        "resolved": f"{resolved} of {len(cases)} ({100 * resolved / len(cases):.2f}%)",
        "attempts": "1 for each instance",
        "run": f"`{submission.run.run_id}`, by clawbench {_of_the_suite(submission)}",
        "harness": ", ".join(sorted({case.manifest.harness for case in cases})),
    }
    if samples > 1:
        facts["attempts"] += f"; this is sample {submission.sample} of {samples} independent ones"
        facts["Pass@1 of all samples"] = share_with_interval(submission.numbers)
    return facts


def _rows_of(submission: Submission) -> str:
    """The revision of the rows; for a local copy its digest, as its path is private."""
    rows = submission.manifest.rows.get(submission.split.set_name)
    if rows is not None and rows.source == dataset_of(submission.split):
        return f" at {rows.revision}" if rows.revision else ""
    digest = submission.manifest.settings.dataset_sha256
    return f", a local copy with SHA-256 {digest}" if digest else ""


def _of_the_suite(submission: Submission) -> str:
    suite = submission.manifest.clawbench
    return " ".join(filter(None, (suite.version, suite.commit))) if suite is not None else "?"


def _refuse_secrets(folder: Path, is_secret: Callable[[bytes], bool]) -> None:
    for path in sorted(found for found in folder.rglob("*") if found.is_file()):
        if is_secret(path.read_bytes()):
            raise RunError(
                f"{path.relative_to(folder)} would contain a provider's key that is set on this machine; find it "
                "in the run's folder, and revoke it"
            )
