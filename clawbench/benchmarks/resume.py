"""Going on with a run of 1,750 cases that have all ended: how long it takes, and the memory of its processes.

The run is a rehearsal (`clawbench.rehearsal`): all of it is real but for the engine. Its first command, which runs
every case, is shown beside the second, which finds them finished.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import docker
from rich.table import Table

from clawbench.rehearsal import checks
from clawbench.rehearsal.command import Memory, started
from clawbench.rehearsal.stage import Stage, rehearsed
from clawbench.verification import verify_run

CASES = 1750
WORKERS = 2


def run(_: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure both commands, and a look and a verification of what they leave."""
    table = Table(f"{CASES:,} cases, -n {WORKERS}", "seconds", box=None)
    for kind in ("controller", "worker"):
        table.add_column(f"peak MiB, {kind}", justify="right")
    with tempfile.TemporaryDirectory(prefix="cbb-", dir="/tmp") as name:
        stage = rehearsed(Path(name), CASES, WORKERS, seed=0, breaks=0.0)
        say(f"running {CASES:,} cases without an engine")
        table.add_row("run", *_measure(stage))
        checks.whole(stage)
        say("the same command again")
        table.add_row("resume", *_measure(stage))
        began = time.monotonic()
        found = verify_run(stage.run)
        if not found.is_sound:
            raise RuntimeError(f"the run is not sound: {found.faults[:3]}")
        table.add_row("verify", f"{time.monotonic() - began:.1f}", "-", "-")
    return table


def _measure(stage: Stage) -> tuple[str, str, str]:
    """Run the command to its end: seconds, and the peaks of its processes."""
    began = time.monotonic()
    with started(stage.command(), stage.environment, stage.output, stage.journal_size) as command:
        code = command.process.wait()
        seconds = time.monotonic() - began
    if code != 1:  # some of its cases are unresolved, and none may be an error
        raise RuntimeError(f"the command ended with {code}:\n{stage.output.read_text()[-2000:]}")
    found = list(command.memory.values())
    return f"{seconds:.1f}", _peak(found, "controller"), _peak(found, "worker")


def _peak(found: list[Memory], kind: str) -> str:
    return f"{max(one.peak for one in found if one.kind == kind) / 1024:.0f}"
