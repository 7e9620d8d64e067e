"""The official harness's verdict on a patch, read from its logs, which both generations write alike."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import InfrastructureError
from evaluation.outcomes import Verdict

_PATCH_FAILED = ">>>>> Patch Apply Failed"
_END_OF_TESTS = ">>>>> End Test Output"
_TESTS_BEGAN = "Eval script for"
_AFTER_TESTS = "Git diff after:"
_GRADING = re.compile(r"^\S+ \S+ - INFO - Grading answer for ", re.MULTILINE)
"""A line of the log itself; the diffs in it begin otherwise."""
_TESTS_TIMED_OUT = "Test timed out after"
_ERROR = re.compile(
    # swebench 4.1 logs an error while formatting it, repeatedly; the first one shows as "<exception"
    r"^swebench\S*EvaluationError: (?!<exception)(?:Error in evaluation for )?\S+ (.*)$",
    re.MULTILINE,
)


class EvaluationError(InfrastructureError):
    """The environment of the evaluation broke, so that there is no verdict; the patch is not to blame."""


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
    """Read the verdict from the harness's logs.

    Args:
        folder: has the logs and, if the harness graded the patch, its report.
        instance_id: of the row.
        seconds: that the evaluation took.
        ended_from_within: whether the container's own processes ended it; asked only if the logs do not tell.

    Raises:
        EvaluationError: there is no verdict.
    """
    report = folder / "report.json"
    if not report.is_file() and (early := _ended_early(folder, seconds)) is not None:
        return early
    if report.is_file() and _END_OF_TESTS in _text(folder / "test_output.txt"):
        return _graded(json.loads(report.read_text(encoding="utf-8"))[instance_id], seconds)
    # The script continues after a failing command, so only the end of its shell or container cuts it short. If the
    # harness itself stopped a container that was still running, the log has the diff that it took afterwards.
    log = _text(folder / "run_instance.log")
    crashed = not report.is_file() and _GRADING.search(log) is not None
    if not crashed and _TESTS_BEGAN in log and (_AFTER_TESTS in log or ended_from_within()):
        return Judgement(Verdict.UNRESOLVED, seconds, detail="the tests ended their own container")
    told = [line.partition(" - ERROR - ")[2] for line in log.splitlines() if " - ERROR - " in line]
    why = told[-1][:300] if told else "the tests did not finish"
    if crashed:
        why = f"it failed while grading ({why})"
    raise EvaluationError(
        f"the official harness gave no verdict: {why} (see {folder.name}/run_instance.log). "
        "Run the same command again."
    )


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def _ended_early(folder: Path, seconds: float) -> Judgement | None:
    """The verdict if the harness wrote no report, but its log tells why; else None.

    The log contains the patch as well, so only lines that are errors of the harness count.
    """
    log = _text(folder / "run_instance.log")
    error = _ERROR.search(log)
    if error is None:
        return None
    if error[1].startswith(_PATCH_FAILED):
        said = log[error.end() :].strip().partition("\n")[0]
        return Judgement(Verdict.APPLY_FAILED, seconds, detail=said[:300])
    if error[1].startswith(_TESTS_TIMED_OUT):
        return Judgement(Verdict.UNRESOLVED, seconds, detail="the tests did not finish in time")
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
