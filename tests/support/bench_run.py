"""Running the benchmark as users do: a pytest of its own, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import docker

from adapters.runtimes import default_home

ROOT = Path(__file__).resolve().parents[2]
ONE = "nanobot and ledgerlite"
ONE_ID = "demo__ledgerlite-204"
"""A case that stands for all, as it is selected and as it is called."""
ONLY_OF_TESTS = ("hypothesispytest", "anyio", "timeout")
"""Plugins of pytest that users do not have."""


def fresh_id(name: str) -> str:
    """A run id that no other test has."""
    return f"test-{name}-{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True)
class BenchRun:
    """A run that has ended."""

    folder: Path
    exit_code: int
    output: str

    @property
    def counts(self) -> dict[str, int]:
        """What pytest's last line says, as in {"passed": 10}."""
        last = self.output.strip().splitlines()[-1]
        return {
            word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)", last)
        }

    def cases(self) -> dict[str, dict[str, Any]]:
        """Every case's outcome and what goes with it."""
        found = [json.loads(path.read_text()) for path in sorted(self.folder.glob("*/*/metadata.json"))]
        return {row["instance_id"]: row for row in found}

    def outcomes(self) -> dict[str, str]:
        return {instance_id: row["outcome"] for instance_id, row in self.cases().items()}

    def predictions(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in (self.folder / "predictions.jsonl").read_text().splitlines()]

    def junit(self) -> dict[str, ElementTree.Element]:
        suite = ElementTree.parse(self.folder / "junit.xml")  # noqa: S314 - pytest wrote it
        return {str(case.get("name")): case for case in suite.getroot().iter("testcase")}

    def case_folder(self, instance_id: str) -> Path:
        return self.folder / "nanobot" / instance_id


def command(artifacts: Path, run_id: str, *arguments: str) -> list[str]:
    """The command of a run, without the plugins that only these tests need.

    A test that means to see what breaks does not want it tried again: it may ask for retries in its arguments.
    """
    without = [word for name in ONLY_OF_TESTS for word in ("-p", f"no:{name}")]
    start = [sys.executable, "-m", "pytest", *without]
    start += [f"--artifacts={artifacts}", f"--run-id={run_id}"]
    return [*start, "--infra-retries=0", *arguments]


def environment(**extra: str) -> dict[str, str]:
    # the outer pytest's own variables must not reach the inner one
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COLUMNS"))}
    return kept | {"COLUMNS": "150"} | extra


def run_bench(artifacts: Path, run_id: str, *arguments: str, **extra: str) -> BenchRun:
    done = subprocess.run(
        command(artifacts, run_id, *arguments),
        cwd=ROOT,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return BenchRun(artifacts / run_id, done.returncode, done.stdout)


def home_that_knows_no_durations(folder: Path) -> dict[str, str]:
    """The variables for a home with all that is installed, in which cases run in the order of their ids.

    Otherwise the cases that took longest come first, in whichever test they ran.
    """
    home = folder / "home"
    home.mkdir()
    for path in default_home().iterdir():
        if path.name != "durations":
            (home / path.name).symlink_to(path)
    return {"CLAWBENCH_HOME": str(home)}


@contextmanager
def started(artifacts: Path, run_id: str, *arguments: str, **extra: str) -> Iterator[subprocess.Popen[str]]:
    """A run that is under way; it is killed at the end of the block if it has not ended."""
    process = subprocess.Popen(
        command(artifacts, run_id, *arguments),
        cwd=ROOT,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def children(pid: int) -> list[int]:
    """The processes that a process started, as the kernel tells it."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def containers_of(run_id: str) -> list[str]:
    client = docker.from_env(timeout=600)
    try:
        found = client.containers.list(all=True, filters={"label": f"clawbench.run={run_id}"}, ignore_removed=True)
        return [str(container.name) for container in found]
    finally:
        client.close()
