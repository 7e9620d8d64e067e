"""When each instance's image is needed next: the cases of a run that are still to come, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterable

AT_WORK = -1
"""The next use of an image whose case is running."""


class ImageSchedule:
    """The cases of a run; safe to use from several threads."""

    def __init__(self, cases: Iterable[tuple[str, str]], finished: Iterable[str] = ()) -> None:
        """Start with no case begun.

        Args:
            cases: the id of each case and its instance, in run order.
            finished: the ids of cases that have a final verdict, so that they need no image.
        """
        without = set(finished)
        self._instance = {case: instance for case, instance in cases if case not in without}
        self._waiting = dict.fromkeys(self._instance)
        self._at_work: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, case: str) -> bool:
        """A case begins, or begins again; returns whether it needs an image."""
        with self._lock:
            if case not in self._instance:
                return False
            self._waiting.pop(case, None)
            self._at_work.add(case)
            return True

    def end(self, case: str) -> bool:
        """A case has ended; returns whether it needed an image."""
        with self._lock:
            self._at_work.discard(case)
            return case in self._instance

    def needed(self) -> dict[str, int]:
        """How many cases will begin before the next one of an instance, by instance.

        It is `AT_WORK` for an instance with a running case. Instances that no coming case needs are left out.
        """
        with self._lock:
            found = {self._instance[case]: AT_WORK for case in self._at_work}
            for number, case in enumerate(self._waiting):
                found.setdefault(self._instance[case], number)
            return found
