"""The official harness as it was before swebench 5, for rows of the older shape.

The two versions can't be in one environment, so 4.1 has its own: the folder that `SWEBENCH_VENV` names, else what
`clawbench install swebench4` made. One process of its Python judges one prediction (`harness4_script.py`).
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

from evaluation.judgement import EvaluationError

VERSION = "4.1.0"
"""What `clawbench install swebench4` installs; any 4.1 will do."""
FOLDER = "swebench4"
"""Its folder in the home of installed runtimes."""
VARIABLE = "SWEBENCH_VENV"

_SCRIPT = Path(__file__).with_name("harness4_script.py")
_TAKEN = "4.1."


class HarnessMissingError(EvaluationError):
    """There is no environment with swebench 4.1; the message says how to get one."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has swebench 4.1."""

    python: Path
    version: str

    @property
    def harness(self) -> str:
        """What numbers must be attributed to."""
        return f"swebench {self.version}"


@dataclass(frozen=True)
class Job:
    """What the script is told."""

    row: dict[str, Any]
    prediction: dict[str, str]
    image: str
    run_id: str
    timeout: int
    labels: dict[str, str]

    @property
    def container(self) -> str:
        """The name that the harness gives its container."""
        return f"sweb.eval.{self.row['instance_id'].lower()}.{self.run_id}"


def find(home: Path | None) -> Environment:
    """The environment that older rows are judged in.

    Args:
        home: the folder of installed runtimes, looked into where `SWEBENCH_VENV` is not set.

    Raises:
        HarnessMissingError: there is none, or it has another version.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else (home or Path()) / FOLDER / VERSION
    python = folder / "bin" / "python"
    advice = f"Run `clawbench install {FOLDER}`, or let {VARIABLE} name a virtual environment with swebench 4.1."
    if not python.exists():
        where = f"{VARIABLE}={named} has no bin/python" if named else f"it is not installed in {folder}"
        raise HarnessMissingError(f"rows of the shape before swebench 5 need swebench 4.1: {where}. {advice}")
    found = [
        match[1]
        for path in folder.glob("lib/python*/site-packages/swebench-*.dist-info")
        if (match := re.fullmatch(r"swebench-(.+)\.dist-info", path.name))
    ]
    if not found or not found[0].startswith(_TAKEN):
        has = f"swebench {found[0]}" if found else "no swebench"
        raise HarnessMissingError(
            f"rows of the shape before swebench 5 need swebench 4.1: {folder} has {has}. {advice}"
        )
    return Environment(python.absolute(), found[0])


def unknown(rows: Mapping[str, tuple[str, str]], environment: Environment) -> list[str]:
    """The ids of rows whose repository or version the harness does not know.

    Args:
        rows: repository and version by id.
        environment: what would judge them.

    Raises:
        EvaluationError: it can't be asked.
    """
    with tempfile.TemporaryDirectory(prefix="clawbench-evaluation-") as scratch:
        said = _call(environment, "check", {name: list(row) for name, row in rows.items()}, Path(scratch))
    return [str(name) for name in json.loads(said)]


def run(job: Job, *, client: docker.DockerClient, home: Path | None, scratch: Path) -> list[str]:
    """Let swebench 4.1 judge one prediction; it leaves its logs below the scratch folder.

    Returns:
        the ids of the containers that it made, which are gone.

    Raises:
        EvaluationError: it could not be run.
    """
    environment = find(home)
    try:
        _call(environment, "judge", asdict(job), scratch)
    finally:
        # where it was ended in the midst of its work
        with suppress(NotFound):
            client.containers.get(job.container).remove(force=True)
    return [str(name) for name in json.loads((scratch / "created.json").read_text())]


def _call(environment: Environment, what: str, told: Mapping[str, Any], folder: Path) -> str:
    """Run the script in a folder, and end it whatever happens here; returns the last line that it printed."""
    job = folder / "job.json"
    job.write_text(json.dumps(told), encoding="utf-8")
    command = [str(environment.python), "-I", "-X", "utf8", str(_SCRIPT), what, str(job)]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaint,
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,  # never written to: it closes when this process ends, and then that ends too
            stdout=subprocess.PIPE,
            stderr=complaint,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            said = process.stdout.read()
            process.wait()
        except BaseException:
            process.kill()
            raise
        complaint.seek(0)
        last = complaint.read().strip().rpartition("\n")[2]
    if process.returncode != 0:
        raise EvaluationError(
            f"{environment.harness} could not be run: {last or f'exit code {process.returncode}'}"
        )
    return said.strip().rpartition("\n")[2]
