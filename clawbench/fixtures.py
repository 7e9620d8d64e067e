"""The fixtures of a case: each owns a resource and gives it back whatever happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clawbench.bench import Bench
from clawbench.case import Case
from clawbench.reporting import CASE
from clawbench.solving import Attempt, open_attempt

BENCH = pytest.StashKey[Bench]()


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    """One case, held by this process alone; a worker that a killed run left at it is waited for."""
    current = Case(request.config.stash[BENCH], request.param)
    request.node.stash[CASE] = current
    with current.folder.lock():
        current.begin()
        try:
            yield current
        finally:
            current.say("")


@pytest.fixture
def attempt(case: Case) -> Iterator[Attempt | None]:
    """The claw in a fresh workspace; None where the run already has its patch, and no claw need work."""
    if case.is_finished or case.is_exported:
        yield None
        return
    with open_attempt(case) as opened:
        yield opened
