"""`python -m tools.benchmarks [NAME ...]`: run all benchmarks, or those that are named."""

from __future__ import annotations

import sys
from collections.abc import Callable

import docker
from rich.console import Console
from rich.table import Table

from clawbench.pytest_plugin.outside_claws import plugins_of_the_environment
from clawbench.pytest_plugin.selection import know_claws
from clawbench.run.worker_context import connect
from tools.benchmarks import (
    claw_costs,
    collection,
    export_time,
    history,
    overhead,
    page_opening,
    patch_time,
    relaying,
    resume,
    startup,
    throughput,
)

BENCHMARKS: dict[str, Callable[[docker.DockerClient, Callable[[str], None]], Table]] = {
    "history": history.run,
    "overhead": overhead.run,
    "throughput": throughput.run,
    "export": export_time.run,
    "patch": patch_time.run,
    "gateway": relaying.run,
    "claws": claw_costs.run,
    "collection": collection.run,
    "resume": resume.run,
    "startup": startup.run,
    "page": page_opening.run,
}


def main(names: list[str]) -> int:
    """Run benchmarks and print a table for each; the exit code is 2 for a name that there is not."""
    console = Console(width=130, highlight=False)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        console.print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    know_claws(plugins_of_the_environment())
    client = connect()
    for name in names or BENCHMARKS:
        console.print(BENCHMARKS[name](client, lambda line: console.print(f"  {line}", markup=False)))
        console.print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
