"""How long the command and the plugin take to start: CPU time, as a multiple of what their libraries alone take."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import docker
from rich.table import Table

from clawbench import ROOT

ROUNDS = 7

_PYTEST = ["-m", "pytest", "--version", "--version"]
"""Given twice, the option loads all plugins, and no test is collected."""
_WAYS = {
    "import typer, rich": ["-c", "import typer, rich"],
    "clawbench --help": ["-c", "from clawbench.cli import app; app()", "--help"],
    "pytest with pytest-xdist": _PYTEST,
    "the same with the plugin": [*_PYTEST, "-p", "clawbench.pytest_plugin"],
}
"""Each second way is compared with the one before it."""


def run(_: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure the command and the plugin, each against its libraries."""
    table = Table("startup", "CPU seconds", "times its libraries", box=None)
    floor = 0.0
    for number, (what, arguments) in enumerate(_WAYS.items()):
        say(f"starting: {what}")
        _cpu_seconds(arguments)  # makes the bytecode
        seconds = median(_cpu_seconds(arguments) for _ in range(ROUNDS))
        floor = floor if number % 2 else seconds
        table.add_row(what, f"{seconds:.2f}", f"{seconds / floor:.1f}")
    return table


def _cpu_seconds(arguments: list[str]) -> float:
    """The CPU time of a Python with these arguments, in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as folder:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(Path(folder))},
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)} ended with exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime
