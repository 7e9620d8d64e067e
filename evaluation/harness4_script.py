"""Run by the Python of an environment that has swebench 4.1: judges one prediction by that version's harness.

`judge JOB` leaves the harness's logs below the working directory and the ids of its containers in `created.json`;
`check JOB` prints the ids of the rows whose repository or version the harness does not know. JOB is a file of
JSON. Its standard input stays open: whoever started it is gone when that closes, and then this ends too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

# the last place to look: nothing of the suite's shall stand in for what this environment has
sys.path.append(str(Path(__file__).resolve().parent.parent))

import docker
from swebench.harness.constants import MAP_REPO_TO_EXT, MAP_REPO_VERSION_TO_SPECS
from swebench.harness.run_evaluation import run_instance
from swebench.harness.test_spec.create_scripts import make_eval_script_list
from swebench.harness.test_spec.test_spec import TestSpec

from evaluation.harness_client import HarnessClient


def specification(row: dict[str, Any]) -> TestSpec:
    """The harness's test specification for a row.

    `make_test_spec` would also make the scripts that build an environment, and fetch requirement files from the
    network for them; the image has its environment already.
    """
    specs = MAP_REPO_VERSION_TO_SPECS[row["repo"]][row["version"]]
    script = make_eval_script_list(row, specs, "testbed", "/testbed", row["base_commit"], row["test_patch"])
    return TestSpec(
        instance_id=row["instance_id"],
        repo=row["repo"],
        version=row["version"],
        repo_script_list=[],
        env_script_list=[],
        # one stream for the markers and the results between them, as the engine keeps no order between two
        eval_script_list=["exec 2>&1", *script],
        arch="x86_64",
        FAIL_TO_PASS=row["FAIL_TO_PASS"],
        PASS_TO_PASS=row["PASS_TO_PASS"],
        language=MAP_REPO_TO_EXT[row["repo"]],
        docker_specs=specs.get("docker_specs", {}),
        namespace="swebench",
    )


def judge(job: dict[str, Any]) -> None:
    """Judge one prediction; nothing is built, pulled or removed but the one container."""
    client = HarnessClient(docker.from_env(timeout=600), job["labels"], job["image"])
    try:
        run_instance(
            specification(job["row"]), job["prediction"], False, False, client, job["run_id"], job["timeout"]
        )
    finally:
        Path("created.json").write_text(json.dumps(client.containers.created))


def check(rows: dict[str, list[str]]) -> None:
    """Print the ids of rows that the harness does not know the repository or version of."""
    unknown = [name for name, (repo, version) in rows.items() if version not in _known(repo)]
    print(json.dumps(unknown))  # noqa: T201


def _known(repo: str) -> dict[str, Any]:
    specs: dict[str, Any] = MAP_REPO_VERSION_TO_SPECS.get(repo, {})
    return specs


def _end_with_the_one_who_started_it() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    threading.Thread(target=_end_with_the_one_who_started_it, daemon=True).start()
    {"judge": judge, "check": check}[sys.argv[1]](told)
