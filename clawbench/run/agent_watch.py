"""Watches the gateway while a claw works: ends the claw if the gateway dies or a spend limit is reached."""

from __future__ import annotations

import threading
from types import TracebackType

from common.errors import known_error
from gateway.case_models import CaseCounts
from gateway.client import GatewayClient, GatewayError
from workspace.running import Workspace

EVERY = 1.0
"""Seconds between two polls."""
_MISSED = 2
"""Number of unanswered polls in a row after which the gateway counts as gone."""


class AgentWatch:
    """A thread that polls a case's counts, and ends the workspace if no further request will be answered.

    A claw whose requests are refused or unanswered would retry until its time is used up. It is ended instead, and
    its work is exported.
    """

    def __init__(self, gateway: GatewayClient, case_id: str, workspace: Workspace) -> None:
        """Watch while the context is entered."""
        self._gateway = gateway
        self._case_id = case_id
        self._workspace = workspace
        self._over = threading.Event()
        self._gone = ""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watch")
        self.waited = 0.0
        """Seconds for which the gateway has held the case's requests back, as of the last poll."""

    def check(self) -> None:
        """Raise GatewayError if the gateway has died."""
        if self._gone:
            raise GatewayError(
                f"the gateway ended while the claw worked. Run the same command again. ({self._gone})"
            )

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
            if is_at_cost_limit(counts):
                self._end()
                return

    def _end(self) -> None:
        try:
            self._workspace.end()
        except Exception as error:
            if known_error(error) is None:
                raise
            # the engine is gone; the thread that runs the claw will report that

    def __enter__(self) -> AgentWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if isinstance(error, Exception):
            self.check()  # the gateway's end explains what happened to the claw


def is_at_cost_limit(counts: CaseCounts) -> bool:
    """Whether a spend limit, the case's or the run's, refused a request."""
    return counts.endings.get("cost_limit", 0) > 0
