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
        without = set(finished)
        self._instance = {case: instance for case, instance in cases if case not in without}
        self._waiting = dict.fromkeys(self._instance)
        self._at_work: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, case: str) -> bool:
        """A case begins, for the first time or once more; whether it needs an image."""
        with self._lock:
            if case not in self._instance:
                return False
            self._waiting.pop(case, None)
            self._at_work.add(case)
            return True

    def end(self, case: str) -> bool:
        """A case has ended; whether it needed an image."""
        with self._lock:
            self._at_work.discard(case)
            return case in self._instance

    def needed(self) -> dict[str, int]:
        """How many cases will begin before an instance's next one, by instance; `AT_WORK` where one is at work.

        An instance that no case needs any more is not among them.
        """
        with self._lock:
            found = {self._instance[case]: AT_WORK for case in self._at_work}
            for number, case in enumerate(self._waiting):
                found.setdefault(self._instance[case], number)
            return found
