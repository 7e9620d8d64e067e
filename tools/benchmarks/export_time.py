"""Export time against the number of changed files, in a small and in a large repository."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import docker
from rich.table import Table

from tools.benchmarks.benchmark_images import MARKS, base_image, image_with
from workspace.container import Keep, Limits, open_workspace
from workspace.export import export
from workspace.prepare import WORKDIR, PreparedImage, prepare
from workspace.start_tree import StartTree

SIZES = (500, 20_000)
CHANGED = (1, 10, 100, 1_000)
ROUNDS = 3

_GENERATE = """
set -eu
rm -rf {workdir} && git init -q {workdir} && cd {workdir}
git config user.email a@example.org && git config user.name A
python3 -c "
import pathlib
for number in range({files}):
    path = pathlib.Path('src/p%d/m%d.py' % (number % 200, number))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('value = %d\\n' % number * 40)
"
git add -A && git commit -qm start && git rev-parse HEAD
"""
_CHANGE = "find src -name '*.py' | sort | head -n {count} | while read -r f; do echo changed >> $f; done"


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure both repositories."""
    table = Table("changed files", *(f"s, repository of {size:,} files" for size in SIZES), "ratio", box=None)
    columns = [seconds(client, size, CHANGED, say) for size in SIZES]
    for number, changed in enumerate(CHANGED):
        small, large = (column[number] for column in columns)
        noted = f"{large / small:.2f}" if changed <= min(SIZES) else ""
        table.add_row(f"{changed:,}", f"{small:.2f}" if changed <= SIZES[0] else "-", f"{large:.2f}", noted)
    return table


def seconds(
    client: docker.DockerClient, size: int, changed: Sequence[int], say: Callable[[str], None]
) -> list[float]:
    """The median seconds of an export from an ended container.

    Args:
        client: the engine.
        size: the number of files in the repository.
        changed: how many of them are changed, for each of the results.
        say: told before anything slow.
    """
    base = base_image(client, say)
    say(f"a repository of {size:,} files")
    text = _GENERATE.format(workdir=WORKDIR, files=size)
    with (
        image_with(client, base, f"export{size}", {"make.sh": text}, ["/clawbench/make.sh"]) as (image, lines),
        tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as folder,
    ):
        prepared = prepare(
            client,
            image,
            instance_id=f"benchmark-{size}",
            base_commit=lines[-1],
            locks=Path(folder),
            labels=MARKS,
            say=say,
        )
        try:
            start = StartTree.of(client, prepared, cache=Path(folder), labels=MARKS, say=say)
            return [median(_export(client, prepared, start, count) for _ in range(ROUNDS)) for count in changed]
        finally:
            client.images.remove(prepared.tag, force=True)


def _export(client: docker.DockerClient, prepared: PreparedImage, start: StartTree, count: int) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_workspace(
            client,
            prepared,
            name=f"clawbench.benchmark.{time.monotonic_ns()}",
            labels=MARKS,
            limits=Limits(),
            gateway_socket=None,
            mounts={},
            environment={},
            keep=Keep(),
        ) as workspace,
    ):
        workspace.run(["sh", "-c", _CHANGE.format(count=count)], timeout=120)
        workspace.freeze()
        taken = export(workspace.container, start, agent_files=(), save_agent_files_to=Path(folder))
    if taken.changed_files != min(count, len(start.entries)):
        raise RuntimeError(f"{taken.changed_files} files exported, {count} were changed")
    return taken.seconds
