"""What the official harness said of a patch, read from the logs that it leaves, the same in both generations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.outcomes import Verdict

_PATCH_FAILED = ">>>>> Patch Apply Failed"
_END_OF_TESTS = ">>>>> End Test Output"
_TESTS_BEGAN = "Eval script for"
_AFTER_TESTS = "Git diff after:"
_TESTS_TIMED_OUT = "Test timed out after"
_ERROR = re.compile(
    # swebench 4.1 logs its error while it tells it, over and over, and the first one can't be told
    r"^swebench\S*EvaluationError: (?!<exception)(?:Error in evaluation for )?\S+ (.*)$",
    re.MULTILINE,
)


class EvaluationError(RuntimeError):
    """The evaluation's environment broke: there is no verdict, and it is nobody's patch's fault."""


@dataclass(frozen=True)
class Judgement:
    """The harness's verdict on one patch."""

    verdict: Verdict
    seconds: float = 0.0
    failing_tests: tuple[str, ...] = ()
    """Expected tests that did not pass, F2P first."""
    detail: str = ""


def read_judgement(
    folder: Path,
    instance_id: str,
    *,
    seconds: float,
    ended_from_within: Callable[[], bool],
) -> Judgement:
    """The verdict that the harness's logs hold.

    Args:
        folder: has its logs and, where it graded, its report.
        instance_id: of the row.
        seconds: that it took.
        ended_from_within: whether the container's own processes ended it; asked only where nothing else tells.

    Raises:
        EvaluationError: no verdict came about.
    """
    report = folder / "report.json"
    if not report.is_file() and (early := _ended_early(folder, seconds)) is not None:
        return early
    if report.is_file() and _END_OF_TESTS in _text(folder / "test_output.txt"):
        return _graded(json.loads(report.read_text(encoding="utf-8"))[instance_id], seconds)
    # The script goes on after any failing command, so only the end of its shell or container stops it short. The
    # harness stops a container that still runs, which the engine notes, so that one is not asked about.
    log = _text(folder / "run_instance.log")
    if _TESTS_BEGAN in log and (_AFTER_TESTS in log or ended_from_within()):
        return Judgement(Verdict.UNRESOLVED, seconds, detail="the tests ended their own container")
    told = [line.partition(" - ERROR - ")[2] for line in log.splitlines() if " - ERROR - " in line]
    why = told[-1][:300] if told else "the tests did not come to their end"
    raise EvaluationError(
        f"the official harness gave no verdict: {why} (see {folder.name}/run_instance.log). "
        "Run the same command again."
    )


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def _ended_early(folder: Path, seconds: float) -> Judgement | None:
    """The verdict where the harness has none but its log tells why; else None.

    The log holds the patch as well, so only a line that is the harness's own error counts.
    """
    log = _text(folder / "run_instance.log")
    error = _ERROR.search(log)
    if error is None:
        return None
    if error[1].startswith(_PATCH_FAILED):
        said = log[error.end() :].strip().partition("\n")[0]
        return Judgement(Verdict.APPLY_FAILED, seconds, detail=said[:300])
    if error[1].startswith(_TESTS_TIMED_OUT):
        return Judgement(Verdict.UNRESOLVED, seconds, detail="the tests did not end in time")
    return None


def _graded(report: Mapping[str, Any], seconds: float) -> Judgement:
    tests = report.get("tests_status", {})
    failing = [
        name for kind in ("FAIL_TO_PASS", "PASS_TO_PASS") for name in tests.get(kind, {}).get("failure", [])
    ]
    detail = ""
    if not report["patch_successfully_applied"]:
        detail = str(report.get("infra_failure_reason") or "no test results could be read from the output")
    verdict = Verdict.RESOLVED if report["resolved"] else Verdict.UNRESOLVED
    return Judgement(verdict, seconds, tuple(failing), detail)
