"""Tells the controller's image keeper which cases begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from clawbench.controller.image_keeper import ImageKeeper
from clawbench.controller.run_session import RunSession
from clawbench.pytest_plugin import selection
from clawbench.pytest_plugin.reporting import CONTEXT
from clawbench.pytest_plugin.workers import is_distributed
from evaluation.lists import ListedInstance


def keep_images(
    config: pytest.Config, session: RunSession, ids: Sequence[str], write: Callable[[str], None]
) -> None:
    """Until the session closes, pull the images of coming cases in advance and remove unneeded ones.

    Args:
        config: the controller's.
        session: the run.
        ids: the ids of all selected tests, in run order.
        write: prints a line to the user's terminal.

    Raises:
        OSError, InstanceError: the images' names can't be read, or can't be published to other runs.
    """
    tests: dict[str, ListedInstance] = {}
    finished: list[str] = []
    context = config.stash[CONTEXT]
    for node_id in ids:
        case_id = selection.case_of(node_id)
        for listed in selection.instances_of([node_id]):
            tests[node_id] = listed
        if case_id is not None and str(case_id) in context.order.finished:
            finished.append(node_id)
    workers = len(getattr(config.option, "tx", None) or [""])
    # without workers, the terminal belongs to the case that runs in this process
    tell = write if is_distributed(config) else None
    session.images = ImageKeeper(context, tests, finished, workers=workers, tell=tell)
    session.images.start()
    config.pluginmanager.register(_ImagesPlugin(session.images))


class _ImagesPlugin:
    """Reports the begin and end of each case to the image keeper."""

    def __init__(self, keeper: ImageKeeper) -> None:
        self._keeper = keeper

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test began."""
        self._keeper.case_began(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test ended."""
        self._keeper.case_ended(nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """A worker died and its test is not run again; pytest reports no other end of that test."""
        self._keeper.case_ended(crashitem)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """No further test begins."""
        self._keeper.close()
