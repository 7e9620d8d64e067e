"""Where a rehearsal takes place: its folder, the command, and the cases that there must be in the end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import demo.task_images
from clawbench.run.worker_context import connect
from records.case_id import CaseId
from records.run_folder import RunDirectory
from tests.long.rehearsal import rehearsal_plugin
from tests.long.rehearsal.fates import fate_of, patch_of
from tests.long.rehearsal.ledger import LEDGER, SYNCED, VARIABLE, Ledger
from tests.long.rehearsal.rehearsed_claws import NAMES
from tests.long.rehearsal.rehearsed_rows import instances, write_rows
from workspace.owner import MAKER, RUN

_WITNESS = ("-p", "tests.long.rehearsal.witness")


@dataclass(frozen=True)
class Expected:
    """What must become of a case."""

    outcome: str
    patch: str | None
    """None: any that is not empty."""


@dataclass(frozen=True)
class Stage:
    """A rehearsal's place."""

    folder: Path
    arguments: tuple[str, ...]
    """Of pytest."""
    environment: Mapping[str, str]
    cases: Mapping[str, Expected]
    """What there must be in the end, by the case's id."""
    engine_before: frozenset[str] | None = None
    """What was in the real engine, see `in_engine`; None where none is used."""

    @property
    def run_id(self) -> str:
        """Another for each rehearsal: a real engine's containers are known by it."""
        return f"rehearsal-{self.folder.name}"

    @property
    def artifacts(self) -> Path:
        """The folder of all runs."""
        return self.folder / "artifacts"

    @property
    def run(self) -> RunDirectory:
        """The run."""
        return RunDirectory(self.artifacts / self.run_id)

    @property
    def output(self) -> Path:
        """What all commands said."""
        return self.folder / "output.txt"

    @property
    def ledger(self) -> Ledger:
        """What was really done, and what was thrown at the run."""
        return Ledger(self.folder / LEDGER)

    @property
    def synced(self) -> Ledger:
        """How much of which file was on the disk."""
        return Ledger(self.folder / SYNCED)

    def command(self) -> list[str]:
        """The same each time."""
        places = [f"--artifacts={self.artifacts}", f"--run-id={self.run_id}"]
        return [sys.executable, "-m", "pytest", *places, *self.arguments]

    def with_samples(self, count: int) -> Stage:
        """The same with so many samples of each case, for one that has no engine.

        Args:
            count: 2 or more.
        """
        names = [*self.cases, *(f"{name}-s{number}" for name in self.cases for number in range(2, count + 1))]
        expected = {name: Expected(fate_of(name).outcome, patch_of(name)) for name in names}
        return replace(self, arguments=(*self.arguments, "--samples", str(count)), cases=expected)

    def ended(self) -> int:
        """How many cases the journal says have ended: how far the run is."""
        try:
            return (self.run.path / "state.jsonl").read_bytes().count(b'"event": "finished"')
        except OSError:
            return 0


def rehearsed(folder: Path, count: int, workers: int, *, seed: int, breaks: float) -> Stage:
    """A run without an engine.

    Args:
        folder: empty, with a short path, as sockets are below it.
        count: of cases: every claw on as many instances as that asks for, a multiple of five.
        workers: `-n`.
        seed: of what breaks in the engine.
        breaks: which part of attempts, see `Engine`.
    """
    chosen = instances()[:: max(1, len(instances()) * len(NAMES) // count)][: count // len(NAMES)]
    ids = [listed.instance_id for listed in chosen]
    write_rows(folder / "rows.jsonl")
    (folder / "instances.txt").write_text("".join(f"{name}\n" for name in ids))
    (folder / rehearsal_plugin.SETTINGS).write_text(json.dumps({"seed": seed, "breaks": breaks}))
    (folder / "artifacts").mkdir()
    case_ids = [f"{claw}-{name}" for claw in NAMES for name in ids]
    return Stage(
        folder,
        (
            *("-p", "tests.long.rehearsal.rehearsal_plugin", *_WITNESS),
            *("-n", str(workers), "--model", "scripted:oracle"),
            # it is there for the suite's own tests, and takes seconds to import where a run ends
            *("-p", "no:hypothesispytest"),
            "--skip-checks",  # they are of the machine and its engine
            "--disk-reserve=100m",  # a disk is filled on purpose, and it is a small one
            *("-k", " or ".join(NAMES), f"--dataset={folder / 'rows.jsonl'}"),
            f"--instances={folder / 'instances.txt'}",
        ),
        _environment(folder) | {"CLAWBENCH_HOME": str(folder / "home")},
        {name: Expected(fate_of(name).outcome, patch_of(name)) for name in case_ids},
    )


def with_containers(folder: Path, claw: str, samples: int, workers: int) -> Stage:
    """A run of a claw over the embedded tasks with real containers, in which every case must be resolved.

    Args:
        folder: empty, with a short path.
        claw: installed.
        samples: of each of the ten tasks.
        workers: `-n`.
    """
    (folder / "artifacts").mkdir()
    case_ids = [
        str(CaseId(claw, instance_id, number))
        for instance_id in demo.task_images.embedded_ids()
        for number in range(1, samples + 1)
    ]
    return Stage(
        folder,
        (
            *("-n", str(workers), "-m", "demo", "-k", claw, "--model", "scripted:oracle"),
            *("--samples", str(samples), "-p", "no:hypothesispytest", "--skip-checks", *_WITNESS),
            "--disk-reserve=100m",  # as without an engine
        ),
        _environment(folder),
        {name: Expected("resolved", None) for name in case_ids},
        engine_before=frozenset(in_engine("")),
    )


def in_engine(run_id: str) -> set[str]:
    """What a run could leave in the engine, by kind and name.

    That is every container of it, and all networks, all volumes that no container uses, and all images without a
    name that somebody was to give one.

    Args:
        run_id: of the run; "" for all that does not depend on one.
    """
    with closing(connect()) as client:
        containers = client.containers.list(all=True, filters={"label": f"{RUN}={run_id}"}, ignore_removed=True)
        # not docker-py's list: it asks for each, which somebody may have removed by then
        images = client.api.images(filters={"dangling": True, "label": MAKER})
        return {
            *(f"container {container.name}" for container in containers),
            *(f"network {network.name}" for network in client.networks.list()),
            *(f"volume {volume.name}" for volume in client.volumes.list(filters={"dangling": True})),
            *(f"image {image['Id']}" for image in images),
        }


def _environment(folder: Path) -> dict[str, str]:
    """What commands are run in, without what an outer pytest left in it and with folders of the stage's own.

    Commands are many, and each starts many processes: what Python compiles for one is there for the next.
    """
    (folder / "tmp").mkdir()
    strange = ("PYTEST_", "COLUMNS", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    return kept | {"TMPDIR": str(folder / "tmp"), "COLUMNS": "150", VARIABLE: str(folder)}
