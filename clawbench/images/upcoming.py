"""Which cases of a run are still to come, in which order, and so when each instance's image is needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable

AT_WORK = -1
"""When an instance is needed whose case is being run."""


class Upcoming:
    """The cases of a run; any thread may ask."""

    def __init__(self, cases: Iterable[tuple[str, str]], finished: Iterable[str] = ()) -> None:
        """Begin with all of them to come.

        Args:
            cases: the id of each and its instance, in the order in which they are run.
            finished: ids of those that need no image, as their verdicts are only repeated.
        """
        self._cases = list(cases)
        self._instance = dict(self._cases)
        self._waiting = dict.fromkeys(case for case, _ in self._cases)
        for case in finished:
            self._waiting.pop(case, None)
        self._at_work: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, case: str) -> None:
        """A case begins, for the first time or once more."""
        with self._lock:
            if case in self._instance:
                self._waiting.pop(case, None)
                self._at_work.add(case)

    def end(self, case: str) -> None:
        """A case has ended."""
        with self._lock:
            self._at_work.discard(case)

    def needed(self) -> dict[str, int]:
        """How many cases will begin before an instance's next one, by instance; `AT_WORK` where one is at work.

        An instance that no case needs any more is not among them.
        """
        with self._lock:
            found = {self._instance[case]: AT_WORK for case in self._at_work}
            for number, case in enumerate(self._waiting):
                found.setdefault(self._instance[case], number)
            return found
