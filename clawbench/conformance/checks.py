"""What the conformance suite's tests have in common: ends in one line, and checks that several share."""

from __future__ import annotations

from typing import NoReturn

import pytest

from clawbench.conformance import evidence as read
from clawbench.conformance.finished import Finished
from clawbench.conformance.laboratory import Laboratory
from clawbench.conformance.runs import EDIT, Run

GRACE = 10.0
"""Seconds that ending a claw may take beyond its budget; less than the shortest, or twice of it would pass."""


def require(condition: object, why: str) -> None:
    """Fail a requirement with a reason in one line."""
    if not condition:
        pytest.fail(" ".join(why.split())[:600], pytrace=False)


def limit(what: str) -> NoReturn:
    """End a test at what the claw itself can't do.

    Args:
        what: that, with what shows it, in one line.
    """
    pytest.xfail(" ".join(what.split())[:600])


def done(lab: Laboratory, run: Run) -> Finished:
    """A run in which the claw was run."""
    found = lab.finished(run)
    require(not found.refused, f"the adapter refused: {found.refused}")
    return found


def has_edit(run: Finished) -> bool:
    """Whether the edit that a run makes before anything else is in its patch."""
    return read.changed_files(run).get(EDIT[0].encode()) == ("100644", EDIT[1].encode())


def arrives(lab: Laboratory, run: Run) -> None:
    """Require that a run's prompt reached the model byte for byte, and that nothing in it was carried out."""
    found = lab.finished(run)
    if found.refused and "can't take a prompt" in found.refused:
        limit(found.refused)
    require(not found.refused, found.refused)
    prompt = (found.folder / "prompt.txt").read_bytes().decode()
    require(found.requests, "no request reached the model")
    said = read.user_text(found.requests[0])
    require(prompt.rstrip() in said, "what the user says in the first request is not the prompt")
    require(b"pwned" not in read.changed_files(found), "a substitution in the prompt was carried out")
    if prompt not in said:
        limit(f"it takes the blanks off the prompt's end; all else of the {len(prompt.encode())} bytes arrives")


def ends_in_time(lab: Laboratory, run: Run, evidence: list[str]) -> None:
    """Require that a run ended at its budget, or before, and that its edit is in the patch."""
    found = done(lab, run)
    took = found.ended - found.began
    require(took <= found.budget + GRACE, f"it took {took:.0f} s, its budget was {found.budget:.0f} s")
    require(has_edit(found), "what was edited before is not in the patch")
    require(
        found.facts["ending"] == "timeout" or took < found.budget,
        f"it counts as {found.facts['ending']} ({found.facts['detail']})",
    )
    evidence.append(f"{found.facts['ending']} after {took:.0f} s of {found.budget:.0f}")


def is_saved(run: Finished) -> None:
    """Require a session with what the claw did in it, and the gateway's count."""
    require(run.session, "no session was saved")
    require(EDIT[0].encode() in run.session, "the tool call is not in the session")
    require(run.usage["gateway"]["turns"] > 0, "no turns were counted")
