"""`python -m clawbench.benchmarks [NAME ...]`: run all benchmarks, or those that are named."""

from __future__ import annotations

import sys
from collections.abc import Callable

import docker
from rich.console import Console
from rich.table import Table

from clawbench.bench import connect
from clawbench.benchmarks import claws, collection, export_time, history, overhead, relaying, resume, throughput
from clawbench.outside import plugins_of_the_environment
from clawbench.selection import know_claws

BENCHMARKS: dict[str, Callable[[docker.DockerClient, Callable[[str], None]], Table]] = {
    "history": history.run,
    "overhead": overhead.run,
    "throughput": throughput.run,
    "export": export_time.run,
    "gateway": relaying.run,
    "claws": claws.run,
    "collection": collection.run,
    "resume": resume.run,
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
