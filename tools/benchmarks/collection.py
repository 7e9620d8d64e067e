"""Collecting the 350 instances for five claws, against pytest's own collection of as many empty tests.

Nothing of it needs the network, a dataset or an installed claw. The worker is one of pytest-xdist's, in a real run
that ends at its rows: there is none in the file that it is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import docker
from rich.table import Table

from adapters.registry import CLAWS
from clawbench import ROOT
from evaluation.lists import listed_instances
from tools.benchmarks.collection_probe import VARIABLE

ROUNDS = 3

_FLOOR = """
import pytest

@pytest.mark.parametrize("case", [pytest.param((n, n), id=f"claw-{{n}}") for n in range({count})])
def test_nothing(case):
    pass
"""


def run(_: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure a controller alone, a worker, and the floor."""
    count = len(CLAWS) * sum(not listed.embedded for listed in listed_instances())
    named = ["-m", "full", "-k", " or ".join(CLAWS)]
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as name:
        folder = Path(name)
        (folder / "test_floor.py").write_text(_FLOOR.format(count=count), encoding="utf-8")
        (folder / "none.jsonl").touch()
        real = [f"--artifacts={folder / 'artifacts'}", "--run-id=collection", f"--dataset={folder / 'none.jsonl'}"]
        ways = {
            "pytest alone, empty tests": (
                folder,
                ["-p", "no:clawbench.pytest_plugin", "--collect-only", "test_floor.py"],
            ),
            "controller, without workers": (ROOT, ["--collect-only", *named]),
            "worker": (ROOT, ["-n", "1", *real, *named]),
        }
        found = {}
        for what, (where, arguments) in ways.items():
            say(f"collecting {count:,} cases: {what}")
            found[what] = [_measure(where, arguments, count) for _ in range(ROUNDS)]
    table = Table(f"collection of {count:,} cases", "seconds", "times the floor", "peak MiB", box=None)
    floor = median(round_["seconds"] for round_ in next(iter(found.values())))
    for what, rounds in found.items():
        seconds = median(round_["seconds"] for round_ in rounds)
        peak = max(round_["peak_kib"] for round_ in rounds) / 1024
        table.add_row(what, f"{seconds:.2f}", f"{seconds / floor:.1f}", f"{peak:.0f}")
    return table


def _measure(where: Path, arguments: list[str], count: int) -> dict[str, Any]:
    """What the process that collects says of itself; of several, the slowest."""
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as told:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "tools.benchmarks.collection_probe", *arguments],
            cwd=where,
            env=os.environ | {VARIABLE: told, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        rounds = [json.loads(path.read_text(encoding="utf-8")) for path in Path(told).iterdir()]
    if not rounds or any(one["items"] != count for one in rounds):
        raise RuntimeError(f"{count} cases were to be collected, found {rounds}:\n{done.stdout[-2000:]}")
    measured: dict[str, Any] = max(rounds, key=lambda one: float(one["seconds"]))
    return measured
