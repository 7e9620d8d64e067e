"""The results of `--collect paired`: the ways of the patch side by side, from one run of each claw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path

from collection.results import Collected, as_json, markdown
from evaluation.collection import Arm, Kind
from evaluation.outcomes import Verdict
from records.case_folder import APPLIED_PATCH
from records.case_id import CaseId
from records.files import write_atomically
from records.models import CaseRecord
from records.run_folder import COLLECTION, RunDirectory


def collected_of(cases: Iterable[CaseRecord]) -> list[Collected]:
    """Every way of every case that was collected in all of them; an infrastructure error is none."""
    return [row for case in cases if case.arms for row in _ways(case)]


def _ways(case: CaseRecord) -> Iterator[Collected]:
    name = str(CaseId(case.claw, case.instance_id, case.sample))
    resolved = case.verdict is Verdict.RESOLVED
    seconds = case.seconds.get("export", 0.0)
    yield Collected(
        case=name, condition="", arm=Arm.WORKSPACE, kind=Kind.EXACT, resolved=resolved, seconds=seconds
    )
    for one in case.arms:
        yield Collected(
            case=name,
            condition="",
            arm=one.arm,
            kind=one.kind,
            resolved=one.verdict is Verdict.RESOLVED,
            seconds=one.seconds,
        )


def write_collection(run: RunDirectory, cases: Iterable[CaseRecord]) -> None:
    """Write the comparison as JSON and Markdown, with each silent corruption; nothing if no case has one.

    Args:
        run: the run.
        cases: its cases.

    Raises:
        OSError: a file can't be read or written.
    """
    rows = [row.model_copy(update={"corruption": _corruption_of(run, row)}) for row in collected_of(cases)]
    if rows:
        data, text = COLLECTION
        write_atomically(run.path / data, as_json(rows))
        write_atomically(run.path / text, markdown(rows).encode())


def _corruption_of(run: RunDirectory, row: Collected) -> str:
    case = CaseId.parse(row.case)
    return corruption(run.case(case).path) if case is not None and row.kind.is_silent else ""


def corruption(folder: Path) -> str:
    """How the change that was judged differs from the claw's; both are diffs against the same files.

    Args:
        folder: of a case with a silent corruption.

    Raises:
        OSError: a file can't be read.
    """
    own, judged = (
        (folder / name).read_text(encoding="utf-8").splitlines() for name in ("git.patch", APPLIED_PATCH)
    )
    return "\n".join(unified_diff(own, judged, "the claw's change", "the change that was judged", lineterm=""))
