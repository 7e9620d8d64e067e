"""Going on with a run of 1,750 cases that have all ended: how long it takes, and the memory of its processes.

The run is a rehearsal (`tests.long.rehearsal`): all of it is real but for the engine. Its first command, which
runs every case, is shown beside the second, which finds them finished: it needs one worker, and no gateway. CPU
is that of all processes of a command. Memory is told as the most that a process had, and as what it grew by for
each case of the run, once a fifth of them had made it warm.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import docker
from rich.table import Table

from clawbench.run.usage import use_in
from records.verification import verify_run
from tests.long.rehearsal import rehearsal_checks
from tests.long.rehearsal.command import started
from tests.long.rehearsal.stage import Stage, rehearsed

CASES = 1750
WORKERS = 2
KINDS = ("controller", "worker", "gateway")


def run(_: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure both commands, and a look and a verification of what they leave."""
    table = Table(f"{CASES:,} cases, -n {WORKERS}", "seconds", "CPU seconds", box=None)
    for kind in KINDS:
        table.add_column(f"peak MiB, {kind}", justify="right")
    with tempfile.TemporaryDirectory(prefix="cbb-", dir="/tmp") as name:
        stage = rehearsed(Path(name), CASES, WORKERS, seed=0, breaks=0.0)
        say(f"running {CASES:,} cases without an engine")
        table.add_row("run", *_measure(stage))
        rehearsal_checks.whole(stage)
        say("the same command again")
        table.add_row("resume", *_measure(stage))
        began = time.monotonic()
        found = verify_run(stage.run, use_in)
        if not found.is_sound:
            raise RuntimeError(f"the run is not sound: {found.faults[:3]}")
        table.add_row("verify", f"{time.monotonic() - began:.1f}", "-", *("-" for _ in KINDS))
    return table


def _measure(stage: Stage) -> tuple[str, ...]:
    """Run the command to its end: seconds, CPU seconds, and the memory of its processes."""
    began, used = time.monotonic(), _cpu()
    with started(stage.command(), stage.environment, stage.output, stage.ended) as command:
        code = command.process.wait()
        seconds = time.monotonic() - began
    if code != 1:  # some of its cases are unresolved, and none may be an error
        raise RuntimeError(f"the command ended with {code}:\n{stage.output.read_text()[-2000:]}")
    cells = [f"{seconds:.1f}", f"{_cpu() - used:.1f}"]
    for kind in KINDS:
        of_kind = [held for held in command.memory.values() if held.kind == kind]
        if not of_kind:
            cells.append("none")
            continue
        grown = max(held.growth() for held in of_kind)
        more = f", {grown:.1f} KiB a case" if grown else ""
        cells.append(f"{max(held.peak for held in of_kind) / 1024:.0f}{more}")
    return tuple(cells)


def _cpu() -> float:
    """Seconds that processes took which have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
