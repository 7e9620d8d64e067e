"""A pytest plugin that sees what a run really does, with or without an engine.

It notes in the ledger when a claw gets a workspace and a judge gets a patch; and how much of which file the run
has seen onto the disk: the rest is what a loss of power takes. Nothing is changed by it. The gateway is a process
without it; what that writes is on the disk when a worker sees to it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluation.judgement import Judgement
from tests.long.rehearsal.ledger import LEDGER, READY, SYNCED, VARIABLE, Ledger, replace, standing
from workspace.owner import CASE
from workspace.running import Workspace

_OPEN = "clawbench.run.agent_run.open_workspace"
_JUDGE = "clawbench.run.case.judge"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Look on, whatever stands in for an engine."""
    folder = Path(os.environ[VARIABLE])
    ledger = Ledger(folder / LEDGER)
    if hasattr(config, "workerinput"):
        ledger.note(READY)
    replace(
        {
            "clawbench.run.agent_run.open_workspace": _claws(
                ledger, standing("clawbench.run.agent_run.open_workspace")
            ),
            _JUDGE: _judges(ledger, standing(_JUDGE)),
            "os.fsync": _synced(Ledger(folder / SYNCED), str(folder / "artifacts") + os.sep, os.fsync),
        }
    )


def _claws(
    ledger: Ledger, real: Callable[..., AbstractContextManager[Workspace]]
) -> Callable[..., AbstractContextManager[Workspace]]:
    @contextmanager
    def open_workspace(*arguments: Any, labels: Mapping[str, str], **named: Any) -> Iterator[Workspace]:
        ledger.note("claw begins", case=labels[CASE])
        with real(*arguments, labels=labels, **named) as workspace:
            yield workspace
        ledger.note("claw ends", case=labels[CASE])

    return open_workspace


def _judges(ledger: Ledger, real: Callable[..., Judgement]) -> Callable[..., Judgement]:
    def judge(*arguments: Any, labels: Mapping[str, str], **named: Any) -> Judgement:
        ledger.note("judge begins", case=labels[CASE])
        judgement = real(*arguments, labels=labels, **named)
        ledger.note("judge ends", case=labels[CASE])
        return judgement

    return judge


def _synced(ledger: Ledger, below: str, real: Callable[[int], None]) -> Callable[[int], None]:
    def fsync(handle: int) -> None:
        before = os.fstat(handle)
        real(handle)
        if stat.S_ISREG(before.st_mode) and str(Path(f"/proc/self/fd/{handle}").readlink()).startswith(below):
            # a file keeps its number when it is renamed
            ledger.note("synced", file=before.st_ino, size=before.st_size)

    return fsync
