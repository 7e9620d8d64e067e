"""What the conformance tests share: results with a reason in one line, and checks that several tests make."""

from __future__ import annotations

from typing import NoReturn

import pytest

from tests_bench.conformance.conformance_runs import EDIT, Run
from tests_bench.conformance.finished_run import FinishedRun, user_text
from tests_bench.conformance.laboratory import Laboratory

GRACE = 10.0
"""Seconds that ending a claw may take beyond its time limit; shorter than any limit, so that twice the limit fails."""


def require(condition: object, why: str) -> None:
    """Fail a requirement with a reason in one line."""
    if not condition:
        pytest.fail(" ".join(why.split())[:600], pytrace=False)


def limit(what: str) -> NoReturn:
    """End a test because the claw itself can't do something.

    Args:
        what: what it can't do, with the evidence, in one line.
    """
    pytest.xfail(" ".join(what.split())[:600])


def done(lab: Laboratory, run: Run) -> FinishedRun:
    """A run that the adapter did not refuse."""
    found = lab.finished(run)
    require(not found.refused, f"the adapter refused: {found.refused}")
    return found


def has_edit(run: FinishedRun) -> bool:
    """Whether the run's first edit is in its patch."""
    return run.changed_files.get(EDIT[0].encode()) == ("100644", EDIT[1].encode())


def arrives(lab: Laboratory, run: Run) -> None:
    """Require that a run's prompt reached the model byte for byte, and that nothing in it was executed."""
    found = lab.finished(run)
    if found.refused and "can't take a prompt" in found.refused:
        limit(found.refused)
    require(not found.refused, found.refused)
    prompt = (found.folder / "prompt.txt").read_bytes().decode()
    require(found.requests, "no request reached the model")
    said = user_text(found.requests[0])
    require(prompt.rstrip() in said, "what the user says in the first request is not the prompt")
    require(b"pwned" not in found.changed_files, "a substitution in the prompt was executed")
    if prompt not in said:
        limit(f"it strips the blanks at the prompt's end; the rest of the {len(prompt.encode())} bytes arrives")


def ends_in_time(lab: Laboratory, run: Run, evidence: list[str]) -> None:
    """Require that a run ended within its time limit, and that its edit is in the patch."""
    found = done(lab, run)
    took = found.ended - found.began
    require(took <= found.budget + GRACE, f"it took {took:.0f} s, its limit was {found.budget:.0f} s")
    require(has_edit(found), "the edit made before is not in the patch")
    require(
        found.facts["ending"] == "timeout" or took < found.budget,
        f"it counts as {found.facts['ending']} ({found.facts['detail']})",
    )
    evidence.append(f"{found.facts['ending']} after {took:.0f} s of {found.budget:.0f}")


def is_saved(run: FinishedRun) -> None:
    """Require a session that shows what the claw did, and the gateway's count."""
    require(run.session, "no session was saved")
    require(EDIT[0].encode() in run.session, "the tool call is not in the session")
    require(run.usage["gateway"]["turns"] > 0, "no turns were counted")
