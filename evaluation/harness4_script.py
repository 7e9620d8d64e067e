"""Judge one prediction by swebench 4.1, run by the Python of an environment that has it.

`judge JOB` writes the harness's logs below the working directory, and the ids of its containers to `created.json`.
`check JOB` prints the ids of the rows whose repository or version the harness does not know. JOB is a JSON file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# in the last place, so that nothing of the suite shadows what this environment has
sys.path.append(str(Path(__file__).resolve().parent.parent))

import docker
from swebench.harness.constants import MAP_REPO_TO_EXT, MAP_REPO_VERSION_TO_SPECS
from swebench.harness.run_evaluation import run_instance
from swebench.harness.test_spec.create_scripts import make_eval_script_list
from swebench.harness.test_spec.test_spec import TestSpec

from evaluation.harness_client import HarnessClient


def specification(row: dict[str, Any]) -> TestSpec:
    """The harness's test specification for a row.

    `make_test_spec` would also write scripts that build an environment, and fetch requirement files for them
    from the network. The image already has its environment.
    """
    specs = MAP_REPO_VERSION_TO_SPECS[row["repo"]][row["version"]]
    script = make_eval_script_list(row, specs, "testbed", "/testbed", row["base_commit"], row["test_patch"])
    return TestSpec(
        instance_id=row["instance_id"],
        repo=row["repo"],
        version=row["version"],
        repo_script_list=[],
        env_script_list=[],
        # one stream for the markers and the results between them, because the engine keeps no order between two
        eval_script_list=["exec 2>&1", *script],
        arch="x86_64",
        FAIL_TO_PASS=row["FAIL_TO_PASS"],
        PASS_TO_PASS=row["PASS_TO_PASS"],
        language=MAP_REPO_TO_EXT[row["repo"]],
        docker_specs=specs.get("docker_specs", {}),
        namespace="swebench",
    )


def judge(job: dict[str, Any]) -> None:
    """Judge one prediction, without building, pulling or removing an image."""
    client = HarnessClient(docker.from_env(timeout=600), job["labels"], job["image"], job["confinement"])
    try:
        run_instance(
            specification(job["row"]), job["prediction"], False, False, client, job["run_id"], job["timeout"]
        )
    finally:
        Path("created.json").write_text(json.dumps(client.containers.created))


def check(rows: dict[str, list[str]]) -> None:
    """Print the ids of rows whose repository or version the harness does not know."""
    unknown = [name for name, (repo, version) in rows.items() if version not in _known(repo)]
    print(json.dumps(unknown))  # noqa: T201


def _known(repo: str) -> dict[str, Any]:
    specs: dict[str, Any] = MAP_REPO_VERSION_TO_SPECS.get(repo, {})
    return specs


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    {"judge": judge, "check": check}[sys.argv[1]](told)
