"""The official harness of before swebench 5, for rows of the older shape.

The two versions can't be in one environment, so 4.1 has its own: the one that `SWEBENCH_VENV` names, else the
one that `clawbench install swebench4` made. Each prediction is judged by a process of its Python
(`harness4_script.py`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import NotFound

from common.errors import LastingError
from evaluation.judgement import EvaluationError

VERSION = "4.1.0"
"""What `clawbench install swebench4` installs; any 4.1 works."""
FOLDER = "swebench4"
"""The name of its folder among the installed runtimes."""
VARIABLE = "SWEBENCH_VENV"

_SCRIPT = Path(__file__).with_name("harness4_script.py")
_ACCEPTED = "4.1."
_DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


class HarnessMissingError(EvaluationError, LastingError):
    """There is no environment with swebench 4.1; the message says how to get one."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has swebench 4.1."""

    python: Path
    version: str

    @property
    def harness(self) -> str:
        """The harness's name and version, for manifests."""
        return f"swebench {self.version}"


@dataclass(frozen=True)
class Job:
    """One prediction for the script to judge."""

    row: dict[str, Any]
    prediction: dict[str, str]
    image: str
    run_id: str
    timeout: int
    labels: dict[str, str]
    confinement: dict[str, Any]
    """See `evaluation.harness_client.confinement`."""

    @property
    def container(self) -> str:
        """The name that the harness gives its container."""
        return f"sweb.eval.{self.row['instance_id'].lower()}.{self.run_id}"


def find(home: Path | None) -> Environment:
    """Find the environment that judges older rows.

    Args:
        home: the folder of installed runtimes; searched if `SWEBENCH_VENV` is not set.

    Raises:
        HarnessMissingError: there is none, or it has another version of swebench.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else (home or Path()) / FOLDER / VERSION
    python = folder / "bin" / "python"
    advice = f"Run `clawbench install {FOLDER}`, or set {VARIABLE} to a virtual environment with swebench 4.1."
    if not python.exists():
        where = f"{VARIABLE}={named} has no bin/python" if named else f"it is not installed in {folder}"
        raise HarnessMissingError(f"rows of the shape before swebench 5 need swebench 4.1: {where}. {advice}")
    found = [
        match[1]
        for path in folder.glob("lib/python*/site-packages/swebench-*.dist-info")
        if (match := re.fullmatch(r"swebench-(.+)\.dist-info", path.name))
    ]
    if not found or not found[0].startswith(_ACCEPTED):
        has = f"swebench {found[0]}" if found else "no swebench"
        raise HarnessMissingError(
            f"rows of the shape before swebench 5 need swebench 4.1: {folder} has {has}. {advice}"
        )
    return Environment(python.absolute(), found[0])


def unknown(rows: Mapping[str, tuple[str, str]], environment: Environment) -> list[str]:
    """The ids of rows whose repository or version the harness does not know.

    Args:
        rows: repository and version by id.
        environment: the harness's.

    Raises:
        EvaluationError: the harness could not be run.
    """
    with tempfile.TemporaryDirectory(prefix="clawbench-evaluation-") as scratch:
        said = _call(environment, "check", {name: list(row) for name, row in rows.items()}, Path(scratch))
    return [str(name) for name in json.loads(said)]


def run(job: Job, *, client: docker.DockerClient, home: Path | None, scratch: Path) -> list[str]:
    """Have swebench 4.1 judge one prediction; it writes its logs below the scratch folder.

    Returns:
        the ids of the containers that it made and removed.

    Raises:
        EvaluationError: the harness could not be run.
    """
    environment = find(home)
    try:
        _call(environment, "judge", asdict(job), scratch)
    finally:
        # still there if the process was killed
        with suppress(NotFound):
            client.containers.get(job.container).remove(force=True)
    return [str(name) for name in json.loads((scratch / "created.json").read_text())]


def _call(environment: Environment, what: str, told: Mapping[str, Any], folder: Path) -> str:
    """Run the script in a folder and return the last line that it printed. It dies with this process."""
    job = folder / "job.json"
    job.write_text(json.dumps(told), encoding="utf-8")
    done = subprocess.run(
        [*_DIES_WITH_PARENT, str(environment.python), "-I", "-X", "utf8", str(_SCRIPT), what, str(job)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise EvaluationError(f"{environment.harness} could not be run: {last or f'exit code {done.returncode}'}")
    return done.stdout.strip().rpartition("\n")[2]
