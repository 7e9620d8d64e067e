"""What pytest shows of a case: its outcome in a few lines, infrastructure as an error, never as a failure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from docker.errors import DockerException

from adapters.base import BadOptionError, NotInstalledError
from clawbench.bench import NotBegunError, SpendLimitError
from clawbench.case import Case
from clawbench.disk import is_full
from demo.images import ImageBuildError
from evaluation.harness import EvaluationError
from evaluation.instances import InstanceError
from evaluation.outcomes import POLICY, Ending, Outcome
from workspace.errors import WorkspaceError

CASE = pytest.StashKey[Case]()
BROKE = pytest.StashKey[BaseException]()
"""What infrastructure broke the case's last attempt."""

INFRASTRUCTURE = (
    WorkspaceError,
    EvaluationError,
    InstanceError,
    ImageBuildError,
    NotInstalledError,
    BadOptionError,
    DockerException,
    # the gateway, the provider, the engine's socket, a full disk
    OSError,
)
"""What can break around a claw. Anything else is a fault of the suite and keeps its traceback."""


def told(error: BaseException) -> str:
    """An error as a user can act on it."""
    if is_full(error):
        return "the disk is full: free some space, then run the same command again (nothing that ended is lost)"
    return f"{error}" or type(error).__name__


def explanation(case: Case, metadata: Mapping[str, Any]) -> str:
    """Why it did not pass, in at most five lines: outcome, failing tests, where the artifacts are.

    Args:
        case: that has an outcome.
        metadata: its.
    """
    outcome = Outcome(metadata["outcome"])
    lines = [f"{outcome}: {POLICY[outcome].meaning}"]
    if metadata.get("ending") not in {None, Ending.FINISHED} or metadata.get("detail"):
        lines.append(f"claw ended: {metadata.get('ending', 'not run')}; {metadata.get('detail', '')}".rstrip("; "))
    failing = metadata.get("failing_tests", [])
    if failing:
        more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
        lines.append(f"failing tests: {', '.join(failing[:3])}{more}")
    lines.append(f"artifacts: {shown(case.folder.path)}")
    return "\n".join(line[:400] for line in lines)


def shown_as(case: Case, metadata: Mapping[str, Any]) -> tuple[Literal["passed", "failed"], str | None]:
    """How pytest shows a verdict: passed, or failed and why.

    Args:
        case: that has a verdict.
        metadata: its.
    """
    if Outcome(metadata["outcome"]) is Outcome.RESOLVED:
        return "passed", None
    return "failed", explanation(case, metadata)


def shown(path: Path) -> str:
    """A path as the user would type it: relative where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _is_verdict(case: Case, call: pytest.CallInfo[None], error: BaseException) -> bool:
    return call.when == "call" and isinstance(error, AssertionError) and case.outcome is not None


def forestall(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Have pytest make no traceback of a verdict: it would be thrown away, and takes longer than all else."""
    case = item.stash.get(CASE, None)
    if case is not None and call.excinfo is not None and _is_verdict(case, call, call.excinfo.value):
        item.repr_failure = lambda *_, **__: explanation(case, case.folder.metadata() or {})  # type: ignore[method-assign]


def amend(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Make a case's report say what the outcome table says."""
    case = item.stash.get(CASE, None)
    error = call.excinfo.value if call.excinfo is not None else None
    if case is None or error is None or isinstance(error, pytest.skip.Exception | KeyboardInterrupt):
        return
    if _is_verdict(case, call, error):
        return
    # pytest counts a failure in a test's own setup as an error, and so must its reports
    report.when = "setup" if call.when == "call" else report.when
    if isinstance(error, NotBegunError):
        report.longrepr = str(error)
        return
    outcome = Outcome.RUN_BUDGET if isinstance(error, SpendLimitError) else Outcome.INFRASTRUCTURE
    if isinstance(error, (*INFRASTRUCTURE, SpendLimitError)):
        why = told(error)
        report.longrepr = f"{outcome}: {why}\nartifacts: {shown(case.folder.path)}"
    else:
        why = f"a fault of the suite itself: {error!r}"
    if call.when != "teardown":
        if isinstance(error, INFRASTRUCTURE):
            item.stash[BROKE] = error
        with suppress(OSError):  # a full disk can't be written down, and pytest says it all the same
            case.broke(why.splitlines()[0][:500], outcome)


def amend_crash(case: Case, report: pytest.TestReport, *, is_told: bool) -> None:
    """Make the report of a case whose worker died say what is known of it.

    Args:
        case: that the worker was at.
        report: of the worker's death.
        is_told: whether what became of the case had been reported before.
    """
    metadata = case.folder.metadata()
    report.user_properties[:] = properties(case, metadata)
    if is_told:
        report.when, report.outcome, report.longrepr = "teardown", "passed", None
        return
    if metadata is not None and case.is_finished:  # the verdict was written down, and stands
        report.when = "call"
        report.outcome, report.longrepr = shown_as(case, metadata)
        return
    why = "its worker process died; run the same command again"
    report.when = "setup"
    report.longrepr = f"infrastructure: {why}\nartifacts: {shown(case.folder.path)}"
    with suppress(OSError):  # a full disk can't be written down
        case.broke(why)


_USED = ("requests", "turns", "unknown_usage", "waited", "retries")
"""What metadata says of a case's use of the model, by the names that reports say it under as well."""


def properties(case: Case, metadata: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    """What JUnit and the JSON report say of a case beside pass or fail.

    Args:
        case: the case.
        metadata: its; None where it has no outcome.
    """
    if metadata is None:
        return []
    tokens = metadata.get("tokens") or {}
    cost = metadata.get("cost") or {}
    told = {
        "outcome": metadata["outcome"],
        "ending": metadata.get("ending", ""),
        "infra_retries": metadata.get("infra_retries", 0),
        **{f"seconds_{name.replace(' ', '_')}": value for name, value in metadata["seconds"].items()},
        **{f"tokens_{name}": value for name, value in tokens.items()},
        **{f"cost_{name}": value for name, value in cost.items()},
        **{name: metadata[name] for name in _USED if name in metadata},
        "patch_bytes": metadata.get("patch_bytes", 0),
        "sample": case.sample,
        "artifacts": f"{case.claw}/{case.folder.path.name}",
    }
    return [(name, "unknown" if value is None else value) for name, value in told.items()]
