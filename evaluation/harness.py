"""The official SWE-bench harness, unpatched, called in process for one case at a time.

What this adds is around it, not in it: a folder of its own for every judgement, because the harness returns an
old verdict for a run id, model and instance that it has seen; containers with an init, without which it waits 15
seconds for each to stop; labels, by which leftovers of a killed run are found; one stream for a script's output.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import docker
from docker.models.containers import Container, ExecResult

from evaluation.instances import Instance
from evaluation.outcomes import Verdict

_PATCH_FAILED = ">>>>> Patch Apply Failed"
_END_OF_TESTS = ">>>>> End Test Output"
_TESTS_BEGAN = "Eval script for"
_AFTER_TESTS = "Git diff after:"
_TESTS_TIMED_OUT = "Test timed out after"


class EvaluationError(RuntimeError):
    """The evaluation's environment broke: there is no verdict, and it is nobody's patch's fault."""


@dataclass(frozen=True)
class Judgement:
    """The harness's verdict on one patch."""

    verdict: Verdict
    seconds: float = 0.0
    failing_tests: tuple[str, ...] = ()
    """Expected tests that did not pass, F2P first."""
    detail: str = ""


def harness_version() -> str:
    """The version that a number must be attributed to."""
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
) -> Judgement:
    """Let the official harness judge a patch in a container of its own.

    Args:
        instance: the row.
        patch: not empty.
        client: the engine.
        image: the source image as it was found here.
        model_name: `model_name_or_path` of the prediction.
        timeout: seconds for the tests.
        folder: takes the harness's own logs and report; what an earlier judgement left there goes.
        labels: for the evaluation's container.
        ended_from_within: tells of a container's id, and a time at which it ran, whether its own processes
            ended it. Tests that do so have not passed; any other end of the container says nothing of them.

    Raises:
        EvaluationError: no verdict came about.
    """
    from swebench.harness.run_evaluation import run_instance  # noqa: PLC0415 - seconds to import
    from swebench.harness.utils import make_test_spec  # noqa: PLC0415

    prediction = {"instance_id": instance.instance_id, "model_name_or_path": model_name, "model_patch": patch}
    spec = make_test_spec({**instance.model_dump(), "image": image})
    # The markers that bracket the results are traced on stderr while most test tools write to stdout, and the
    # engine keeps no order between the two: results could come to lie outside, and go uncounted.
    spec.eval_script_list.insert(0, "exec 2>&1")
    shutil.rmtree(folder, ignore_errors=True)
    # the container's name carries this id: no two judgements on one machine share it
    run_id = sha256(f"{folder}{os.getpid()}{time.time_ns()}{patch}".encode()).hexdigest()[:16]
    began, since = time.monotonic(), time.time()
    watched = _Client(client, labels)
    with tempfile.TemporaryDirectory(prefix="clawbench-evaluation-") as scratch:
        talk = Path(scratch) / "harness.txt"
        with chdir(scratch), talk.open("w") as sink, redirect_stdout(sink):
            result = run_instance(spec, prediction, watched, run_id, int(timeout))
        _keep_logs(Path(scratch) / "logs" / "run_evaluation" / run_id, folder)
    seconds = time.monotonic() - began
    if result is None and (early := _ended_early(folder, seconds)) is not None:
        return early
    if result is not None and _END_OF_TESTS in _text(folder / "test_output.txt"):
        return _graded(result[1][instance.instance_id], seconds)
    # The script goes on after any failing command, so only the end of its shell or container stops it short. The
    # harness stops a container that still runs, which the engine notes, so that one is not asked about.
    log = _text(folder / "run_instance.log")
    created = watched.containers.created
    if created and _TESTS_BEGAN in log and (_AFTER_TESTS in log or ended_from_within(created[-1], since)):
        return Judgement(Verdict.UNRESOLVED, seconds, detail="the tests ended their own container")
    told = [line.partition(" - ERROR - ")[2] for line in log.splitlines() if " - ERROR - " in line]
    why = told[-1][:300] if told else "the tests did not come to their end"
    raise EvaluationError(
        f"the official harness gave no verdict: {why} (see {folder.name}/run_instance.log). "
        "Run the same command again."
    )


class _Container:
    """A container whose commands' output is UTF-8: the harness decodes it strictly, also a diff of other text."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)

    def exec_run(self, *arguments: Any, **settings: Any) -> ExecResult:
        result = self._container.exec_run(*arguments, **settings)
        if not isinstance(result.output, bytes):
            return result
        return ExecResult(result.exit_code, result.output.decode(errors="replace").encode())


class _Containers:
    """The engine's containers, but for what creation adds."""

    def __init__(self, client: docker.DockerClient, labels: Mapping[str, str]) -> None:
        self._containers = client.containers
        self._labels = dict(labels)
        self.created: list[str] = []

    def create(self, **settings: Any) -> Any:
        # a proxy of the user's may carry a password
        settings |= {"init": True, "labels": self._labels, "use_config_proxy": False}
        container = self._containers.create(**settings)
        self.created.append(str(container.id))
        return _Container(container)

    def get(self, name: str) -> Any:
        return self._containers.get(name)


class _Client:
    """What the harness needs of a Docker client."""

    def __init__(self, client: docker.DockerClient, labels: Mapping[str, str]) -> None:
        self.images = client.images
        self.containers = _Containers(client, labels)


def _keep_logs(written: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for path in written.rglob("*"):
        if path.is_file():
            shutil.move(path, folder / path.name)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def _ended_early(folder: Path, seconds: float) -> Judgement | None:
    """The verdict where the harness has none but its log tells why; else None.

    The log holds the patch as well, so only a line that is the harness's own error counts.
    """
    log = _text(folder / "run_instance.log")
    error = re.search(r"^swebench\S*EvaluationError: Error in evaluation for \S+ (.*)$", log, re.MULTILINE)
    if error is None:
        return None
    if error[1].startswith(_PATCH_FAILED):
        said = log[error.end() :].strip().partition("\n")[0]
        return Judgement(Verdict.APPLY_FAILED, seconds, detail=said[:300])
    if error[1].startswith(_TESTS_TIMED_OUT):
        return Judgement(Verdict.UNRESOLVED, seconds, detail="the tests did not end in time")
    return None


def _graded(report: Mapping[str, Any], seconds: float) -> Judgement:
    tests = report.get("tests_status", {})
    failing = [
        name for kind in ("FAIL_TO_PASS", "PASS_TO_PASS") for name in tests.get(kind, {}).get("failure", [])
    ]
    detail = ""
    if not report["patch_successfully_applied"]:
        detail = str(report.get("infra_failure_reason") or "no test results could be read from the output")
    verdict = Verdict.RESOLVED if report["resolved"] else Verdict.UNRESOLVED
    return Judgement(verdict, seconds, tuple(failing), detail)
