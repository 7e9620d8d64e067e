"""Running the benchmark as users do: a pytest of its own, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import docker

ROOT = Path(__file__).resolve().parent.parent


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
    """Where a test means to see what breaks, once is enough: it may ask for retries in its own arguments.

    The plugins of what only these tests need are left out: they are slow to import, and users have them not.
    """
    start = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:anyio"]
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
        timeout=1800,
        check=False,
    )
    return BenchRun(artifacts / run_id, done.returncode, done.stdout)


def containers_of(run_id: str) -> list[str]:
    client = docker.from_env(timeout=600)
    try:
        found = client.containers.list(all=True, filters={"label": f"clawbench.run={run_id}"}, ignore_removed=True)
        return [str(container.name) for container in found]
    finally:
        client.close()
