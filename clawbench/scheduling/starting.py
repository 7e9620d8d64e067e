"""When workers are started: where verdicts are to be repeated, one at first, and more as there are cases for them.

Which cases a command means is known when a worker has collected them. A run that has ended needs no more workers
than that one, and each takes seconds to come up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from clawbench.selection import case_of

if TYPE_CHECKING:
    from execnet import XSpec
    from xdist.workermanage import WorkerController


class OneAtFirst:
    """A plugin of the controller."""

    def __init__(self, config: pytest.Config, finished: Collection[str]) -> None:
        """Nothing is started yet.

        Args:
            config: of the controller.
            finished: the ids of cases whose verdict is only repeated.
        """
        self._plugins = config.pluginmanager
        self._finished = finished
        self._held_back: list[XSpec] = []

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: list[XSpec]) -> None:
        """Have pytest-xdist start the first worker alone."""
        self._held_back = specs[1:]
        del specs[1:]

    @pytest.hookimpl(trylast=True, optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: Sequence[str]) -> None:
        """Start as many more as have a case to run."""
        left = sum((name := case_of(test)) is None or name.case_id not in self._finished for test in ids)
        wanted, self._held_back = self._held_back[: max(0, left - 1)], []
        session: Any = self._plugins.get_plugin("dsession")
        for spec in wanted:
            session._active_nodes.add(node.nodemanager.setup_node(spec, node.putevent))
