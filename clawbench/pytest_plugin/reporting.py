"""What pytest shows of a case: its outcome in a few lines; an infrastructure error as an error, never as a failure."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from clawbench import ROOT
from common.errors import ClawbenchError, NotBegunError, known_error
from evaluation.outcomes import Ending, Outcome

if TYPE_CHECKING:
    from adapters.base import Adapter
    from clawbench.run.case import Case
    from clawbench.run.worker_context import WorkerContext  # noqa: F401 - in a quoted type below
    from records.models import CaseRecord

CONTEXT = pytest.StashKey["WorkerContext"]()
"""The context that the cases of this process share; only set in processes that run cases."""
CASE = pytest.StashKey["Case"]()
"""The case of a test that was set up."""
BROKE = pytest.StashKey[ClawbenchError]()
"""The error that ended the case's last attempt."""


def explanation(case: Case, record: CaseRecord) -> str:
    """Why a case did not pass, in at most five lines: outcome, failing tests, where the artifacts are.

    Args:
        case: one that has an outcome.
        record: the case's.
    """
    lines = [f"{record.outcome}: {record.policy.meaning}"]
    if record.ending not in {None, Ending.FINISHED} or record.detail:
        lines.append(f"claw ended: {record.ending or 'not run'}; {record.detail}".rstrip("; "))
    failing = record.failing_tests
    if failing:
        more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
        lines.append(f"failing tests: {', '.join(failing[:3])}{more}")
    lines.append(f"artifacts: {shown(case.folder.path)}")
    return "\n".join(line[:400] for line in lines)


def shown_as(case: Case, record: CaseRecord) -> tuple[Literal["passed", "failed"], str | None]:
    """How pytest shows a verdict: passed, or failed and why.

    Args:
        case: one that has a verdict.
        record: the case's.
    """
    if record.outcome is Outcome.RESOLVED:
        return "passed", None
    return "failed", explanation(case, record)


def shown(path: Path) -> str:
    """A path as the user would type it: relative if it lies below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@contextmanager
def shortened(terminal: pytest.TerminalReporter, run_id: str) -> Iterator[None]:
    """Let pytest list only the first failures and errors, so that they do not bury the result."""
    whole = {
        kind: terminal.stats[kind]
        for kind in ("failed", "error")
        if len(terminal.stats.get(kind, ())) > MOST_FAILURES
    }
    terminal.stats.update({kind: reports[:MOST_FAILURES] for kind, reports in whole.items()})
    try:
        yield
    finally:
        terminal.stats.update(whole)
    more = sum(len(reports) - MOST_FAILURES for reports in whole.values())
    if more:
        terminal.write_line(f"and {more:,} more: `clawbench status {run_id} --cases` lists all cases")


def _record(case: Case) -> CaseRecord | None:
    """The case's metadata; None if there is none that can be read."""
    try:
        return case.folder.metadata()
    except (OSError, ClawbenchError):
        return None


def amend(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Change a case's report to what the table of outcomes prescribes."""
    case = item.stash.get(CASE, None)
    error = call.excinfo.value if call.excinfo is not None else None
    if case is None or error is None or isinstance(error, pytest.skip.Exception | KeyboardInterrupt):
        return
    if call.when == "call" and isinstance(error, AssertionError):
        record = _record(case)
        if record is not None:
            report.longrepr = explanation(case, record)
            return
    # pytest counts a failure in a test's own setup as an error, and so must its reports
    report.when = "setup" if call.when == "call" else report.when
    known = known_error(error)
    if isinstance(known, NotBegunError):
        report.longrepr = str(known)
        return
    outcome = Outcome(known.outcome) if known is not None and known.outcome else Outcome.INFRASTRUCTURE
    why = str(known) if known is not None else f"{whose_bug(case.adapter, call.excinfo)}: {error!r}"
    if known is not None:
        report.longrepr = f"{outcome}: {why}\nartifacts: {shown(case.folder.path)}"
    if call.when != "teardown":
        if known is not None:
            item.stash[BROKE] = known
        # on a full disk or beside damaged records the outcome can't be saved; pytest reports the case anyway
        with suppress(OSError, ClawbenchError):
            case.broke((why.splitlines() or [""])[0][:500], outcome)


def whose_bug(adapter: Adapter, raised: pytest.ExceptionInfo[BaseException] | None) -> str:
    """Whose code raised an unexpected exception: the adapter's, with file and line, or the suite's."""
    try:
        of_adapter = Path(inspect.getfile(type(adapter))).resolve()
    except (OSError, TypeError):
        return "a bug in the suite itself"
    for entry in reversed(raised.traceback if raised is not None else ()):
        path = Path(entry.path).resolve()
        if path == of_adapter or (path.parent == of_adapter.parent and path.parent.parent.name == "adapters"):
            return f"the adapter of {adapter.name} failed at {shown(path)}, line {entry.lineno + 1}"
        if ROOT in path.parents and ".venv" not in path.parts:
            break  # the suite's code, called by the adapter
    return "a bug in the suite itself"


def amend_crash(case: Case, report: pytest.TestReport, *, is_reported: bool) -> None:
    """Complete the report of a case whose worker died with what is known about it.

    Args:
        case: the case that the worker was running.
        report: of the worker's death.
        is_reported: whether the worker had reported the case's outcome.
    """
    record = _record(case)
    report.user_properties[:] = properties(case, record)
    if is_reported:
        report.when, report.outcome, report.longrepr = "teardown", "passed", None
        return
    if record is not None and case.final_verdict() is not None:  # the worker died after it had saved the outcome
        report.when = "call"
        report.outcome, report.longrepr = shown_as(case, record)
        return
    why = "its worker process died; run the same command again"
    report.when = "setup"
    report.longrepr = f"infrastructure: {why}\nartifacts: {shown(case.folder.path)}"
    with suppress(OSError, ClawbenchError):  # as above
        case.broke(why)


MOST_FAILURES = 20
"""How many failures, and how many errors, are listed at the end."""
_USED = ("requests", "turns", "unknown_usage", "waited", "retries")
"""The fields of a case's metadata that reports have under the same names."""


def properties(case: Case, record: CaseRecord | None) -> list[tuple[str, object]]:
    """What JUnit and the JSON report contain about a case besides pass or fail.

    Args:
        case: the case.
        record: the case's; None if it has no outcome.
    """
    if record is None:
        return []
    facts = record.facts()  # plain values: workers send them to the controller
    told = {
        "outcome": facts["outcome"],
        "ending": facts["ending"] or "",
        "infra_retries": record.infra_retries,
        **{f"seconds_{name.replace(' ', '_')}": value for name, value in record.seconds.items()},
        **{f"tokens_{name}": value for name, value in (facts["tokens"] or {}).items()},
        **{f"cost_{name}": value for name, value in (facts["cost"] or {}).items()},
        **{name: facts[name] for name in _USED},
        "patch_bytes": record.patch_bytes,
        "sample": case.id.sample,
        "artifacts": f"{case.claw}/{case.folder.path.name}",
    }
    return [(name, "unknown" if value is None else value) for name, value in told.items()]
