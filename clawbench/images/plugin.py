"""How the keeper of images comes to a run: pytest tells it which cases begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from clawbench import selection
from clawbench.fixtures import BENCH
from clawbench.gold import plugin as gold
from clawbench.images.keeper import ImageKeeper
from clawbench.scheduling.workers import is_distributed
from clawbench.session import Session
from evaluation.lists import ListedInstance


def keep(config: pytest.Config, session: Session, ids: Sequence[str], write: Callable[[str], None]) -> None:
    """Have the images of the selected cases cared for until the session closes.

    Args:
        config: the controller's.
        session: the run.
        ids: of all selected tests, in the order in which they are run.
        write: prints a line to the user's terminal.

    Raises:
        OSError, InstanceError: which images they are can't be read, or told to other runs.
    """
    tests: dict[str, ListedInstance] = {}
    finished: list[str] = []
    bench = config.stash[BENCH]
    for node_id in ids:
        name = selection.case_of(node_id)
        for listed in [name.listed] if name is not None else gold.instances_of([node_id]):
            tests[node_id] = listed
        if name is not None and name.case_id in bench.order.finished:
            finished.append(node_id)
    workers = len(getattr(config.option, "tx", None) or [""])
    # where cases run in this very process, its terminal is theirs while they do
    tell = write if is_distributed(config) else None
    session.images = ImageKeeper(bench, tests, finished, workers=workers, tell=tell)
    session.images.start()
    config.pluginmanager.register(session.images)
