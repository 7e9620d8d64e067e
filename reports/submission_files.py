"""A submission's folder, as the SWE-bench experiments repository asks for it, written whole or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from records.places import without_places
from reports.submission import Finished, Submission, SubmissionError, dataset_of
from reports.summary import share_with_interval
from reports.trajectory import trajectory

_LOGS = ("patch.diff", "report.json", "test_output.txt", "eval.sh", "run_instance.log")
"""What the official harness leaves of an instance. All but the last are of the container or of the claw, and are
copied as they are: they are the evidence."""
_ON_THIS_MACHINE = "run_instance.log"
TODO = "TODO"
"""Stands where only the submitter can say what belongs there; the official tools look for it too."""


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
        to: the folder that gets it.
        name: of the new folder; None is `Submission.default_name`.
        places: folders of this machine, with what to call them.
        is_secret: whether bytes hold a key of this machine's.

    Returns:
        the new folder.

    Raises:
        SubmissionError: there is one of that name, the name is none of a folder, or something holds a key.
        OSError: something can't be read or written.
    """
    target = target_of(submission, to, name)
    to.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=to, prefix=f".{target.name}."))
    try:
        _write(submission, scratch, target.name, places)
        _refuse_secrets(scratch, is_secret)
        scratch.chmod(0o755)
        scratch.rename(target)  # which fails where someone else has put anything there meanwhile
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return target


def target_of(submission: Submission, to: Path, name: str | None) -> Path:
    """The folder that a submission would be written as.

    Raises:
        SubmissionError: there is one of that name, or the name is none of a folder.
    """
    name = name or submission.default_name
    if name in {".", ".."} or Path(name).name != name:
        raise SubmissionError(f"--name {name}: write the name of one new folder, without a path")
    if (to / name).exists():
        raise SubmissionError(f"{to / name} is there already; give another folder by --to, or a name by --name")
    return to / name


def _write(submission: Submission, folder: Path, name: str, places: dict[Path, str]) -> None:
    predictions = [case.folder.prediction() for case in submission.cases]
    rows = "".join(f"{json.dumps(row)}\n" for row in predictions)
    (folder / "all_preds.jsonl").write_text(rows, "utf-8")
    (folder / "trajs").mkdir()
    for case in submission.cases:
        text = without_places(trajectory(case.folder, case.metadata), places)
        path = folder / "trajs" / f"{case.folder.instance_id}.md"
        path.write_text(text, "utf-8", "replace")
        if case.has_patch:
            _copy_logs(case, folder / "logs" / case.folder.instance_id, places)
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
            # the patch that was judged is the prediction, whatever the harness kept of it
            (folder / name).write_bytes(case.folder.patch().encode())
        elif name == _ON_THIS_MACHINE and source.is_file():
            text = source.read_text("utf-8", "surrogateescape")
            (folder / name).write_text(without_places(text, places), "utf-8", "surrogateescape")
        elif source.is_file():
            shutil.copyfile(source, folder / name)


def _results(submission: Submission) -> dict[str, Any]:
    """The files of results, in the shapes that the experiments repository's own scripts write."""
    by_repo: dict[str, dict[str, int]] = {}
    for case in submission.cases:
        counts = by_repo.setdefault(str(case.manifest.get("repo", "?")), {"resolved": 0, "total": 0})
        counts["total"] += 1
        counts["resolved"] += case.is_resolved
    return {
        "results/results.json": {
            "no_generation": [case.folder.instance_id for case in submission.cases if not case.has_patch],
            "no_logs": [
                case.folder.instance_id for case in submission.cases if case.has_patch and not case.has_test_output
            ],
            "resolved": [case.folder.instance_id for case in submission.cases if case.is_resolved],
        },
        "results/resolved_by_repo.json": dict(sorted(by_repo.items())),
        "per_instance_details.json": {
            case.folder.instance_id: {
                "resolved": case.is_resolved,
                "cost": _cost(case.metadata),
                "api_calls": case.metadata.get("requests"),
            }
            for case in submission.cases
        },
    }


def _cost(metadata: dict[str, Any]) -> float | None:
    """US dollars by the price table; None where that is not known."""
    cost = metadata.get("cost") or {}
    return float(cost["priced"]) if cost.get("priced") is not None and not cost.get("unpriced") else None


def _metadata(submission: Submission) -> str:
    claw, version, model = submission.numbers.name, submission.version, submission.model
    facts = {
        "info": {
            "name": f"{claw} {version} + {model}",
            "site": f"{TODO} address of a page on the system",
            "report": f"{TODO} address of a paper, technical report or blog post",
            "authors": f"{TODO} names",
            "logo": f"{TODO} address of a picture",
        },
        "assets": {
            "repo": f"{TODO} address of a public repository with all_preds.jsonl, logs/ and trajs/",
            "logs": f"{TODO} address of logs/ in it",
            "trajs": f"{TODO} address of trajs/ in it",
        },
        "tags": {
            "checked": False,
            "model": [model],
            "org": f"{TODO} organisation",
            "os_model": f"{TODO} true if the model is open source, else false",
            "os_system": f"{TODO} true if the system is open source, else false",
            "system": {"attempts": 1},
            "agent": submission.claw,
            "agent_org": f"{TODO} who publishes the agent",
            "model_display": f"{TODO} the model as it is to be shown",
            "model_org": f"{TODO} who publishes the model",
        },
    }
    return yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)


def _readme(submission: Submission, name: str) -> str:
    return "\n".join([*_head(submission, name), *_checklist(submission), *_by_repo(submission), *_TAIL])


def _head(submission: Submission, name: str) -> Iterator[str]:
    cases, split = submission.cases, submission.split
    resolved = sum(case.is_resolved for case in cases)
    yield f"# {name}\n"
    if not submission.has_model:
        yield f"**This is no submission: no model was asked, `{submission.model}` answered.**\n"
    elif not submission.is_whole:
        of = f"{len(cases)} of the {split.size} instances of {split.name}" if split.name else "the embedded tasks"
        yield f"**This is no submission: it covers {of}.** The layout is that of one.\n"
    yield f"{TODO}: what the system is, the technical report, the authors and the first author's page.\n"
    rows = {
        "split": f"`{split.title}` (rows of `{dataset_of(split)}`{_rows_of(submission)})",
        "agent": f"{submission.numbers.name} {submission.version}",
        "model": f"`{submission.model}`",
        "resolved": f"{resolved} of {len(cases)} ({100 * resolved / len(cases):.2f}%)",
        "attempts": "1 for each instance",
        "run": f"`{submission.run.run_id}`, by clawbench {_of_the_suite(submission)}",
        "harness": ", ".join(sorted({str(case.manifest.get("harness", "?")) for case in cases})),
    }
    samples = submission.numbers.samples
    if samples > 1:
        rows["attempts"] += f"; this is sample {submission.sample} of {samples} independent ones"
        rows["Pass@1 of all samples"] = share_with_interval(submission.numbers)
    yield from ("| | |", "| --- | --- |", *(f"| {key} | {value} |" for key, value in rows.items()), "")


def _rows_of(submission: Submission) -> str:
    """The revision of the rows; of a local copy its digest, as its path is nobody's business."""
    rows = submission.manifest.get("rows", {}).get(submission.split.set_name, {})
    if rows.get("source") == dataset_of(submission.split):
        return f" at {rows['revision']}" if rows.get("revision") else ""
    digest = submission.manifest["settings"].get("dataset_sha256")
    return f", a local copy with SHA-256 {digest}" if digest else ""


def _of_the_suite(submission: Submission) -> str:
    suite = submission.manifest.get("clawbench") or {}
    return " ".join(str(suite[part]) for part in ("version", "commit") if suite.get(part)) or "?"


def _checklist(submission: Submission) -> Iterator[str]:
    """The four points of the experiments repository's checklist, ticked where the run's own settings hold them."""
    is_closed = submission.manifest["settings"].get("egress") == "gateway"
    yield "## Checklist\n"
    yield "- [x] Is a pass@1 submission: one attempt at each instance"
    yield "- [x] Does not use SWE-bench test knowledge (`PASS_TO_PASS`, `FAIL_TO_PASS`): the workspace has none"
    yield "- [x] Does not use the `hints` field: the agent is told the problem statement alone"
    if is_closed:
        yield "- [x] Does not have web-browsing: the model's endpoint is all that the workspace can reach"
    else:
        yield f"- [ ] {TODO}: the workspace had an open network (`--egress open`); tell what kept solutions away"
    yield ""


def _by_repo(submission: Submission) -> Iterator[str]:
    yield "## Resolved by repository\n"
    for repo, counts in _results(submission)["results/resolved_by_repo.json"].items():
        yield f"- {repo}: {counts['resolved']}/{counts['total']}"
    yield ""


_TAIL = (
    "## What is here\n",
    "- `all_preds.jsonl`: the predictions, as `swebench eval` reads them",
    "- `logs/<instance_id>/`: what the official harness left of each; an empty patch has none",
    "- `trajs/<instance_id>.md`: how the agent came to its patch",
    "- `results/`, `per_instance_details.json`: what was resolved, what it cost by the price table, its requests",
    "- `metadata.yaml`: the leaderboard's entry\n",
    f"Each {TODO} is the submitter's to say.\n",
)


def _refuse_secrets(folder: Path, is_secret: Callable[[bytes], bool]) -> None:
    for path in sorted(found for found in folder.rglob("*") if found.is_file()):
        if is_secret(path.read_bytes()):
            raise SubmissionError(
                f"{path.relative_to(folder)} would hold a provider's key that is set on this machine; look for it "
                "in the run's folder, and let it be withdrawn"
            )
