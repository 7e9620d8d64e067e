"""Cases are handed to the workers of pytest-xdist one at a time, in their order.

pytest-xdist keeps a second test waiting at each worker, as it does not begin one before it knows the next. A test
of a second may wait there; a case behind another one of an hour may not, while other workers have nothing to do.
So workers of a benchmark take a case, run it, and take another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import pytest
from xdist.scheduler import LoadScheduling
from xdist.workermanage import WorkerController

from workspace.owner import has_ended

FEWEST_DEATHS = 10
"""Workers that may die in a row, for each attempt that a case has, or as many as there are workers. A case that
kills its worker may do so for each claw and sample."""

_BRIEF = 20
"""Cases that take no time which are handed to a worker at once: it need not wait for the controller after each."""
_ENDS_WITHIN = 10.0
"""Seconds that a process whose pipe has closed may take to be gone."""


class OneAtATime(LoadScheduling):  # type: ignore[misc]  # xdist has no types that are looked up
    """No worker has a case waiting, so that any case goes to whoever is free first.

    Workers that have nothing to do stay: the case of a worker that dies is theirs.
    """

    collection: list[str] | None
    numnodes: int
    """Workers that tell what they collected before anything is handed out."""

    def __init__(
        self,
        config: pytest.Config,
        log: Any,
        put_back: Callable[[str], bool | None],
        attempts: int,
        *,
        waits_for_all: bool = True,
        is_brief: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Nothing is handed out before `schedule`.

        Args:
            config: the controller's.
            log: of pytest-xdist.
            put_back: told the test id of each case whose worker died, once its process is gone; whether the case
                is to be run again, or None where all of it was reported before.
            attempts: that a case has.
            waits_for_all: whether nothing is handed out before all workers have told what they collected; else
                the first one begins.
            is_brief: whether a test id's case takes no time, as its verdict is only repeated: some of these may
                wait at a worker.
        """
        super().__init__(config, log)
        self._put_back = put_back
        self._is_brief = is_brief
        self._dead: set[WorkerController] = set()
        """Workers that take nothing any more, and whose end has not been told."""
        self._deaths = 0
        self._most_deaths = attempts * max(FEWEST_DEATHS, self.numnodes)
        if not waits_for_all:
            self.numnodes = 1

    @property
    def tests_finished(self) -> bool:
        """Whether all cases have ended."""
        return self.collection_is_completed and not self.has_pending

    def schedule(self) -> None:
        """Hand out what is to be done: to all that have told what they collected, and to each that comes later."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            collected: list[str] = next(iter(self.node2collection.values()))
            self.collection = collected
            self.pending[:] = range(len(collected))
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:  # noqa: ARG002
        """Give a worker the next case if it has none."""
        is_ready = node in self.node2collection and not node.shutting_down and node not in self._dead
        if is_ready and self.pending and not self.node2pending[node]:
            try:
                self._send_tests(node, self._at_once())
            except OSError:  # it has died, which pytest-xdist will tell in a moment; it never got the case
                self._dead.add(node)
                self.pending[:0] = self.node2pending[node]
                self.node2pending[node] = []
                for other in self.nodes:
                    self.check_schedule(other)

    def _at_once(self) -> int:
        """How many of the next cases go to one worker: one, or some that take no time."""
        collected = self.collection or []
        return max(1, sum(1 for _ in takewhile(lambda i: self._is_brief(collected[i]), self.pending[:_BRIEF])))

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """A worker ended a case."""
        self._deaths = 0
        super().mark_test_complete(node, item_index, duration)

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker has ended; if it died at a case that is to be run again, the case is not told as crashed.

        Raises:
            pytest.exit.Exception: worker after worker died, and no case ended in between.
            KeyError: it never was ready.
        """
        died = not hasattr(node, "workeroutput")  # which a worker sends as it ends, even by Ctrl-C
        if died:
            self._count_death()
        self._dead.discard(node)
        pending: Sequence[int] = self.node2pending.pop(node)
        if not pending or self.collection is None:
            return None
        test_id: str = self.collection[pending[0]]
        if not died:
            return test_id
        self.pending[:0] = pending[1:]  # which it had not begun
        _wait_for_end(node.gateway._rinfo().pid)
        again = self._put_back(test_id)
        if again:
            self.mark_test_pending(test_id)
        return test_id if again is False else None

    def _count_death(self) -> None:
        self._deaths += 1
        if self._deaths > self._most_deaths:
            pytest.exit(
                f"{self._deaths} workers died and no case ended in between: see what kills them (memory?), then "
                "run the same command again",
                returncode=int(pytest.ExitCode.INTERRUPTED),
            )


def _wait_for_end(pid: int) -> None:
    """Return when a process whose pipe has closed is gone, with its locks and whatever it was known by."""
    deadline = time.monotonic() + _ENDS_WITHIN
    while not has_ended(pid) and time.monotonic() < deadline:
        time.sleep(0.02)


def take_one_at_a_time(session: pytest.Session) -> None:
    """Have a worker run what it is handed without knowing what comes next.

    Args:
        session: of the worker, before its first test.
    """
    plugins = session.config.pluginmanager.get_plugins()
    worker = next(plugin for plugin in plugins if hasattr(plugin, "run_one_test"))

    def run_one_test() -> None:
        worker.item_index = worker.nextitem_index
        item = session.items[worker.item_index]
        began = time.perf_counter()
        # what its module shares stays set up for the next one, whichever it is
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=item.parent)
        seconds = time.perf_counter() - began
        worker.sendevent("runtest_protocol_complete", item_index=worker.item_index, duration=seconds)
        if not (session.shouldfail or session.shouldstop):
            worker.nextitem_index = worker.torun.get()

    worker.run_one_test = run_one_test
