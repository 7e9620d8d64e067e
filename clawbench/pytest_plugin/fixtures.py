"""The fixtures of a case: each owns a resource and releases it whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from clawbench.pytest_plugin.reporting import CASE, CONTEXT

if TYPE_CHECKING:
    from clawbench.run.agent_run import Claw, Container
    from clawbench.run.case import Case


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    """One case, locked for this process; waits for a worker that a killed run left running on it."""
    from clawbench.run.case import Case  # noqa: PLC0415 - only a run needs it, and it is slow to import

    current = Case(request.config.stash[CONTEXT], request.param)
    request.node.stash[CASE] = current
    with current.folder.lock():
        current.begin()
        try:
            yield current
        finally:
            current.say("")


@pytest.fixture
def container(case: Case) -> Iterator[Container]:
    """A fresh container, or a stand-in if the case already has its patch."""
    from clawbench.run.agent_run import open_container  # noqa: PLC0415 - as above

    with open_container(case) as opened:
        yield opened


@pytest.fixture
def adapter(case: Case) -> Claw:
    """The adapter of the case's claw."""
    from clawbench.run.agent_run import Claw  # noqa: PLC0415 - as above

    return Claw(case.adapter)
