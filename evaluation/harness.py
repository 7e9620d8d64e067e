"""The official SWE-bench harness, unpatched, called for one case at a time.

What this adds is around the harness: a folder of its own for each evaluation, because the harness repeats its old
verdict on a run id, model and instance that it has seen; containers with an init process, without which it
waits 15 seconds for each to stop; labels, by which the leftovers of a killed run are found; one stream for a
script's output.

Rows of swebench 5's shape are judged in this process, older ones by `evaluation.harness4`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stdout
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import docker

from evaluation import harness4
from evaluation.harness_client import HarnessClient, confinement
from evaluation.instances import Instance
from evaluation.judgement import EvaluationError, Judgement, read_judgement

__all__ = ["EvaluationError", "Judgement", "harness_version", "judge"]


def harness_version(instance: Instance | None = None, home: Path | None = None) -> str:
    """The harness's name and version, for manifests.

    Args:
        instance: the row; None stands for any row of swebench 5's shape.
        home: the folder of installed runtimes, see `harness4.find`.

    Raises:
        HarnessMissingError: the row has the older shape, and the harness for it is not installed.
    """
    if instance is not None and instance.is_older:
        return harness4.find(home).harness
    return f"swebench {version('swebench')}"


def judge(
    instance: Instance,
    patch: str,
    *,
    client: docker.DockerClient,
    image: str,
    model_name: str,
    timeout: float,
    folder: Path,
    labels: Mapping[str, str],
    ended_from_within: Callable[[str, float], bool],
    home: Path | None = None,
    network: bool = False,
) -> Judgement:
    """Have the official harness judge a patch in a container of its own.

    Args:
        instance: the row.
        patch: not empty.
        client: the engine.
        image: of the container, whichever image the row names.
        model_name: the `model_name_or_path` of the prediction.
        timeout: seconds for the tests.
        folder: receives the harness's logs and report; its old contents are removed.
        labels: for the evaluation's container.
        ended_from_within: tells from a container's id, and a time at which it ran, whether its own processes ended
            it. Tests that did so have failed; any other end of the container says nothing about them.
        home: the folder of installed runtimes, for rows of the older shape; see `harness4.find`.
        network: whether the tests get a network; see `confinement`.

    Raises:
        EvaluationError: there is no verdict.
    """
    prediction = {"instance_id": instance.instance_id, "model_name_or_path": model_name, "model_patch": patch}
    shutil.rmtree(folder, ignore_errors=True)
    # part of the container's name, so no two evaluations on one machine may share it
    run_id = sha256(f"{folder}{os.getpid()}{time.time_ns()}{patch}".encode()).hexdigest()[:16]
    confined = confinement(network=network)
    began, since = time.monotonic(), time.time()
    with tempfile.TemporaryDirectory(prefix="clawbench-evaluation-") as scratch:
        if instance.is_older:
            row, limit = instance.for_harness(), int(timeout)
            job = harness4.Job(row, prediction, image, run_id, limit, dict(labels), confined)
            created = harness4.run(job, client=client, home=home, scratch=Path(scratch))
        else:
            watched = HarnessClient(client, labels, confinement=confined)
            _run(instance, prediction, watched, image=image, run_id=run_id, timeout=timeout, scratch=Path(scratch))
            created = watched.containers.created
        _keep_logs(Path(scratch) / "logs" / "run_evaluation" / run_id, folder)
    return read_judgement(
        folder,
        instance.instance_id,
        seconds=time.monotonic() - began,
        ended_from_within=lambda: bool(created) and ended_from_within(created[-1], since),
    )


def _run(
    instance: Instance,
    prediction: dict[str, str],
    client: HarnessClient,
    *,
    image: str,
    run_id: str,
    timeout: float,
    scratch: Path,
) -> None:
    """Run swebench 5 in this process; it writes its logs below the scratch folder."""
    from swebench.harness.run_evaluation import run_instance  # noqa: PLC0415 - takes seconds
    from swebench.harness.utils import make_test_spec  # noqa: PLC0415

    spec = make_test_spec({**instance.for_harness(), "image": image})
    # The markers around the results are written to stderr, but most test tools write to stdout, and the engine
    # keeps no order between the two. Results could end up outside of the markers and be missed.
    spec.eval_script_list.insert(0, "exec 2>&1")
    talk = scratch / "harness.txt"
    with chdir(scratch), talk.open("w") as sink, redirect_stdout(sink):
        run_instance(spec, prediction, client, run_id, int(timeout))


def _keep_logs(written: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for path in written.rglob("*"):
        if path.is_file():
            shutil.move(path, folder / path.name)
