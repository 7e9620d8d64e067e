"""A look at the gateway while a claw works: no claw goes on without it, or against a spend limit."""

from __future__ import annotations

import threading
from types import TracebackType

from docker.errors import DockerException

from gateway.client import GatewayClient, GatewayError
from gateway.models import CaseCounts
from workspace.running import Workspace

EVERY = 1.0
"""Seconds between two looks."""
_MISSED = 2
"""Looks in a row without an answer after which the gateway is gone."""


class Watch:
    """A thread that looks at a case's counts, and ends its workspace where there is nothing to wait for.

    A claw whose requests are refused at a spend limit, or have nobody to go to, would try again until its time is
    up. It is ended instead, with all that it did left to be exported.
    """

    def __init__(self, gateway: GatewayClient, case_id: str, workspace: Workspace) -> None:
        """Nothing is watched before it is entered."""
        self._gateway = gateway
        self._case_id = case_id
        self._workspace = workspace
        self._over = threading.Event()
        self._gone = ""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watch")
        self.waited = 0.0
        """Seconds that the case was held back at the gateway, as of the last look."""

    def check(self) -> None:
        """See that the gateway was there all the time (raises GatewayError)."""
        if self._gone:
            raise GatewayError(f"the gateway ended under the claw. Run the same command again. ({self._gone})")

    def _watch(self) -> None:
        missed = 0
        while not self._over.wait(EVERY):
            try:
                counts = self._gateway.counts(self._case_id)
            except LookupError:
                return  # the case was closed
            except GatewayError as error:
                missed += 1
                if missed == _MISSED:
                    self._gone = str(error)
                    self._end()
                    return
                continue
            missed = 0
            self.waited = counts.waited
            if is_at_its_limit(counts):
                self._end()
                return

    def _end(self) -> None:
        try:
            self._workspace.end()
        except (DockerException, OSError):
            return  # the engine is gone, which whoever runs the claw in it finds out

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if isinstance(error, Exception):
            self.check()  # what became of the claw then follows from it


def is_at_its_limit(counts: CaseCounts) -> bool:
    """Whether a request was not let through because of a spend limit, the case's or the run's."""
    return counts.endings.get("budget", 0) > 0
