"""Hands cases to the workers of pytest-xdist one at a time, in their order.

pytest-xdist keeps a second test waiting at each worker. That is fine for tests of a second, but a case must not wait
behind one that takes an hour while other workers are idle. So each worker gets its next case only when it has finished
the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import WorkerController

from clawbench.pytest_plugin.private_names import pid_of
from common.processes import has_ended

FEWEST_DEATHS = 10
"""How many workers may die in a row, for each attempt of a case; with more workers than this, as many as there are
workers. One bad instance may kill a worker for each claw and sample."""
_ENDS_WITHIN = 10.0
"""How long to wait, in seconds, for a process to end after its pipe has closed."""


class OneAtATime:
    """A scheduler of pytest-xdist (`xdist.scheduler.Scheduling`): each case goes to the first free worker.

    Idle workers stay, so that they can take the case of a worker that dies.
    """

    def __init__(
        self,
        workers: int,
        *,
        replay: Callable[[str], bool],
        put_back: Callable[[str], bool | None],
        attempts: int,
    ) -> None:
        """Distribute tests; nothing is sent to a worker before `schedule`.

        Args:
            workers: how many must have collected before the first test is sent.
            replay: if the test's case has a final verdict, reports it and returns True; such a test is not sent to a
                worker.
            put_back: called with the test of a worker that died, once its process is gone; returns whether the test
                is run again, or None if the worker had already reported all of it.
            attempts: how often each case may be run.
        """
        self._workers = workers
        self._replay = replay
        self._put_back = put_back
        self._most_deaths = attempts * max(FEWEST_DEATHS, workers)
        self._deaths = 0
        self._collected: dict[WorkerController, list[str]] = {}
        self._tests: list[str] | None = None
        self._waiting: list[int] = []
        self._at: dict[WorkerController, int | None] = {}
        """The test that each worker is running."""
        self._unreachable: set[WorkerController] = set()
        """Workers that died but that pytest-xdist has not reported yet."""

    @property
    def nodes(self) -> list[WorkerController]:
        """All workers."""
        return list(self._at)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all initial workers have collected."""
        return len(self._collected) >= self._workers

    @property
    def has_pending(self) -> bool:
        """Whether a test is waiting or running."""
        return bool(self._waiting) or any(test is not None for test in self._at.values())

    @property
    def tests_finished(self) -> bool:
        """Whether all tests have ended."""
        return self._tests is not None and not self.has_pending

    def add_node(self, node: WorkerController) -> None:
        """A worker has started."""
        self._at[node] = None

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """A worker has collected.

        Raises:
            pytest.exit.Exception: it collected different tests than the other workers.
        """
        for other, tests in self._collected.items():
            difference = report_collection_diff(tests, list(collection), other.gateway.id, node.gateway.id)
            if difference:
                pytest.exit(difference, returncode=int(pytest.ExitCode.INTERNAL_ERROR))
            break
        self._collected[node] = list(collection)

    def schedule(self) -> None:
        """Send tests: at first to all workers, later to each worker that joins."""
        if self._tests is None:
            self._tests = next(iter(self._collected.values()))
            self._waiting = [number for number, test in enumerate(self._tests) if not self._replay(test)]
        self._hand_out()

    def _hand_out(self) -> None:
        for node, test in self._at.items():
            if not self._waiting:
                return
            is_free = test is None and node in self._collected and node not in self._unreachable
            if not is_free or node.shutting_down:
                continue
            number = self._waiting.pop(0)
            try:
                node.send_runtest_some([number])
            except OSError:  # the worker died before it got the test
                self._unreachable.add(node)
                self._waiting.insert(0, number)
            else:
                self._at[node] = number

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """A worker has ended a test."""
        self._deaths = 0
        self._at[node] = None
        self._hand_out()

    def mark_test_pending(self, item: str) -> None:
        """Put a test at the front of the queue."""
        self._waiting.insert(0, (self._tests or []).index(item))
        self._hand_out()

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Never called, because no worker has a waiting test."""
        raise NotImplementedError

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker has ended.

        Returns:
            the test that it was running, if that is to be reported as crashed.

        Raises:
            pytest.exit.Exception: too many workers died in a row and no case ended in between.
            KeyError: the worker was never ready.
        """
        died = not hasattr(node, "workeroutput")  # a worker sends this when it ends, even after Ctrl-C
        if died:
            self._count_death()
        number = self._at.pop(node)
        self._unreachable.discard(node)
        if number is None or self._tests is None:
            return None
        test = self._tests[number]
        if not died:
            return test
        _wait_for_end(pid_of(node))
        is_run_again = self._put_back(test)
        if is_run_again:
            self.mark_test_pending(test)
        return test if is_run_again is False else None

    def _count_death(self) -> None:
        self._deaths += 1
        if self._deaths > self._most_deaths:
            pytest.exit(
                f"{self._deaths} workers died and no case ended in between: find out what kills them (memory?), then "
                "run the same command again",
                returncode=int(pytest.ExitCode.INTERRUPTED),
            )


def _wait_for_end(pid: int) -> None:
    """Wait until a process whose pipe has closed has ended, so that it no longer holds a lock."""
    deadline = time.monotonic() + _ENDS_WITHIN
    while not has_ended(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
