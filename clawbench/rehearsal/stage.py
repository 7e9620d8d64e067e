"""Where a rehearsal takes place: its folder, the command, and the cases that there must be in the end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import demo.images
from clawbench.rehearsal import plugin
from clawbench.rehearsal.claws import NAMES
from clawbench.rehearsal.fates import fate_of, patch_of
from clawbench.rehearsal.ledger import Ledger
from clawbench.rehearsal.rows import instances, write_rows
from records.case import folder_name
from records.run import RunDirectory

RUN_ID = "rehearsal"


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

    @property
    def artifacts(self) -> Path:
        """The folder of all runs."""
        return self.folder / "artifacts"

    @property
    def run(self) -> RunDirectory:
        """The run."""
        return RunDirectory(self.artifacts / RUN_ID)

    @property
    def output(self) -> Path:
        """What all commands said."""
        return self.folder / "output.txt"

    @property
    def ledger(self) -> Ledger:
        """What was really done, and what was thrown at the run."""
        return Ledger(self.folder / plugin.LEDGER)

    def command(self) -> list[str]:
        """The same each time."""
        places = [f"--artifacts={self.artifacts}", f"--run-id={RUN_ID}"]
        return [sys.executable, "-m", "pytest", *places, *self.arguments]

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
    (folder / plugin.SETTINGS).write_text(json.dumps({"seed": seed, "breaks": breaks}))
    (folder / "artifacts").mkdir()
    case_ids = [f"{claw}-{name}" for claw in NAMES for name in ids]
    return Stage(
        folder,
        (
            *("-p", "clawbench.rehearsal.plugin", "-n", str(workers), "--model", "scripted:oracle"),
            # it is there for the suite's own tests, and takes seconds to import where a run ends
            *("-p", "no:hypothesispytest"),
            "--skip-checks",  # they are of the machine and its engine
            "--disk-reserve=100m",  # a disk is filled on purpose, and it is a small one
            *("-k", " or ".join(NAMES), f"--dataset={folder / 'rows.jsonl'}"),
            f"--instances={folder / 'instances.txt'}",
        ),
        _environment(folder) | {plugin.VARIABLE: str(folder), "CLAWBENCH_HOME": str(folder / "home")},
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
        f"{claw}-{folder_name(instance_id, number)}"
        for instance_id in demo.images.embedded_ids()
        for number in range(1, samples + 1)
    ]
    return Stage(
        folder,
        (
            *("-n", str(workers), "-m", "demo", "-k", claw, "--model", "scripted:oracle"),
            *("--samples", str(samples), "-p", "no:hypothesispytest", "--skip-checks"),
        ),
        _environment(folder),
        {name: Expected("resolved", None) for name in case_ids},
    )


def _environment(folder: Path) -> dict[str, str]:
    """What commands are run in, without what an outer pytest left in it and with folders of the stage's own.

    Commands are many, and each starts many processes: what Python compiles for one is there for the next.
    """
    (folder / "tmp").mkdir()
    strange = ("PYTEST_", "COLUMNS", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    return kept | {"TMPDIR": str(folder / "tmp"), "COLUMNS": "150"}
