"""The harness before swebench 5, in an environment of its own: real verdicts on rows of the older shape.

It knows its own repositories only, so a row here has the name and version of one of them, and with these goes the
harness's own script for it. What is in the image is an embedded task: that script, written for an image with
conda, finds there what it needs to run the tests.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import docker
import pytest
from support.waiting import wait_for

from adapters.runtimes import default_home
from demo.task_images import TASK_REPO, ensure_image, image_name
from evaluation import harness4
from evaluation.harness import EvaluationError, Judgement, harness_version, judge
from evaluation.harness4 import HarnessMissingError
from evaluation.instances import NEWER_COLUMNS, Instance, checked, load_instance
from evaluation.lists import by_id
from evaluation.outcomes import Verdict
from workspace.owner import labels
from workspace.prepare import PreparedImage, prepare
from workspace.running import ended_from_within

TASK = "demo__cronspan-118"
ID = "pallets__flask-118"
RUN = f"test-harness4-{uuid.uuid4().hex}"
"""Of this worker's tests alone: another may run some of them at the same time."""


def _environment() -> harness4.Environment | None:
    try:
        return harness4.find(default_home())
    except HarnessMissingError:
        return None


needs_swebench4 = pytest.mark.skipif(
    _environment() is None, reason="no swebench 4.1: run `clawbench install swebench4`, or set SWEBENCH_VENV"
)


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    connected = docker.from_env(timeout=600)
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def row() -> Instance:
    embedded = load_instance(by_id()[TASK], demo=TASK_REPO)
    older = {name: value for name, value in embedded.model_dump().items() if name not in NEWER_COLUMNS}
    # the script runs the test files of the test patch, and no others
    kept = [test for test in embedded.PASS_TO_PASS if test.startswith("tests/test_schedule.py")]
    return checked(
        older | {"instance_id": ID, "repo": "pallets/flask", "version": "2.0", "PASS_TO_PASS": kept},
    )


@pytest.fixture(scope="module")
def prepared(client: docker.DockerClient, row: Instance) -> PreparedImage:
    ensure_image(client, TASK, cache=default_home(), say=print)
    return prepare(
        client,
        image_name(TASK),
        instance_id=TASK,
        base_commit=row.base_commit,
        locks=default_home() / "locks",
        labels=labels(RUN),
        say=print,
    )


NOTHING = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"
BINARY_OUTPUT = (
    "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
    '@@ -0,0 +1,2 @@\n+import os\n+os.write(2, b"\\xff\\xfe\\n")\n'
)


@needs_swebench4
@pytest.mark.docker
class TestJudge:
    @pytest.fixture
    def verdict_on(
        self, client: docker.DockerClient, row: Instance, prepared: PreparedImage, tmp_path: Path
    ) -> Callable[..., Judgement]:
        def call(patch: str, timeout: float = 300, image: str = prepared.evaluation) -> Judgement:
            return judge(
                row,
                patch,
                client=client,
                image=image,
                model_name="claw/model",
                timeout=timeout,
                folder=tmp_path / "evaluation",
                labels=labels(RUN),
                ended_from_within=partial(ended_from_within, client),
                home=default_home(),
            )

        return call

    def test_gold_resolves_and_the_harness_logs_are_kept(
        self, verdict_on, row, client, prepared, tmp_path
    ) -> None:
        named = {name: client.images.get(name).id for name in (prepared.source, prepared.tag, prepared.evaluation)}
        parts = {name: _parts(client, name) for name in named}
        assert verdict_on(row.patch).verdict is Verdict.RESOLVED
        kept = {path.name for path in (tmp_path / "evaluation").iterdir()}
        assert {"report.json", "run_instance.log", "test_output.txt", "patch.diff", "eval.sh"} <= kept
        assert named == {name: client.images.get(name).id for name in named}, "it removed an image"
        assert parts == {name: _parts(client, name) for name in named}, "it removed a part of one"
        assert not client.containers.list(all=True, filters={"label": f"clawbench.run={RUN}"}, ignore_removed=True)

    def test_an_edit_that_fixes_nothing_is_unresolved_and_names_the_tests(self, verdict_on, row) -> None:
        judgement = verdict_on(NOTHING)
        assert judgement.verdict is Verdict.UNRESOLVED
        assert set(judgement.failing_tests) == set(row.FAIL_TO_PASS)

    def test_an_empty_patch_is_judged_by_its_tests(self, verdict_on, row) -> None:
        judgement = verdict_on("")
        assert judgement.verdict is Verdict.UNRESOLVED
        assert set(judgement.failing_tests) == set(row.FAIL_TO_PASS)

    def test_garbage_is_apply_failed_with_the_reason(self, verdict_on) -> None:
        judgement = verdict_on("this is no patch\n")
        assert judgement.verdict is Verdict.APPLY_FAILED
        assert judgement.detail

    def test_output_that_is_not_utf_8_is_judged(self, verdict_on, row) -> None:
        assert verdict_on(row.patch + BINARY_OUTPUT).verdict is Verdict.RESOLVED
        assert verdict_on(BINARY_OUTPUT).verdict is Verdict.UNRESOLVED

    def test_endless_tests_are_unresolved(self, verdict_on) -> None:
        endless = BINARY_OUTPUT.replace("+import os\n", "+import time\n").replace(
            'os.write(2, b"\\xff\\xfe\\n")', "time.sleep(600)"
        )
        judgement = verdict_on(endless, timeout=2)
        assert judgement.verdict is Verdict.UNRESOLVED
        assert judgement.detail == "the tests did not finish in time"

    def test_tests_that_end_their_own_container_have_not_passed(self, verdict_on) -> None:
        fatal = BINARY_OUTPUT.replace('os.write(2, b"\\xff\\xfe\\n")', 'os.system("kill -9 -1")')
        judgement = verdict_on(fatal)
        assert judgement.verdict is Verdict.UNRESOLVED
        assert judgement.detail == "the tests ended their own container"

    def test_a_missing_image_gives_no_verdict(self, verdict_on, row) -> None:
        with pytest.raises(EvaluationError, match="no verdict"):
            verdict_on(row.patch, image="clawbench-evaluation:there-is-no-such-image")

    def test_the_container_of_a_killed_case_has_its_label(self, client, row, prepared, tmp_path) -> None:
        endless = BINARY_OUTPUT.replace('os.write(2, b"\\xff\\xfe\\n")', "__import__('time').sleep(600)")
        program = (
            "import docker, json, sys; from pathlib import Path; from evaluation.harness import judge;"
            "from evaluation.instances import Instance; told = json.load(sys.stdin);"
            "judge(Instance.model_validate(told['row']), told['patch'], client=docker.from_env(timeout=600),"
            "image=told['image'], model_name='m', timeout=600, folder=Path(told['folder']),"
            "labels=told['labels'], ended_from_within=lambda *_: False, home=Path(told['home']))"
        )
        told = Instance.model_dump_json(row), endless, prepared.evaluation, str(tmp_path / "evaluation")
        marks = labels(f"{RUN}-killed")
        text = (
            f'{{"row": {told[0]}, "patch": {_json(told[1])}, "image": "{told[2]}", "folder": "{told[3]}", '
            f'"labels": {_json(marks)}, "home": "{default_home()}"}}'
        )
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, text=True)
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        mine = {"label": f"clawbench.run={RUN}-killed"}
        try:

            def has_container() -> bool:
                assert process.poll() is None
                return bool(client.containers.list(filters=mine, ignore_removed=True))

            wait_for(has_container, "the harness's container")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        wait_for(lambda: not _orphaned_scripts(), "the script to exit with its parent")
        left = client.containers.list(all=True, filters=mine, ignore_removed=True)
        for container in left:
            container.remove(force=True)
        assert left


def _parts(client: docker.DockerClient, image: str) -> list[str]:
    """The images that an image was made from, step by step, as far as they are here."""
    return [step["Id"] for step in client.images.get(image).history()]


def _json(value: object) -> str:
    return json.dumps(value)


def _orphaned_scripts() -> list[Path]:
    """The processes of the script that outlive their parents."""
    return [path for path in Path("/proc").glob("[0-9]*") if _is_orphaned_script(path)]


def _is_orphaned_script(process: Path) -> bool:
    try:
        if b"harness4_script.py" not in (process / "cmdline").read_bytes():
            return False
        return (process / "status").read_text().partition("PPid:\t")[2].split()[0] == "1"
    except OSError:
        return False


@needs_swebench4
def test_rows_that_the_harness_does_not_know_are_reported(row: Instance) -> None:
    environment = harness4.find(default_home())
    rows = {"a": ("pallets/flask", "2.0"), "b": ("pallets/flask", "0.0.0"), "c": ("demo/cronspan", "1.4")}
    assert harness4.unknown(rows, environment) == ["b", "c"]


@needs_swebench4
def test_the_version_is_that_of_the_harness_that_judged(row: Instance) -> None:
    assert harness_version(row, default_home()).startswith("swebench 4.1.")
    assert harness_version().startswith("swebench 5.")


def test_a_missing_environment_is_an_error_with_advice(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("SWEBENCH_VENV", raising=False)
    with pytest.raises(HarnessMissingError, match="clawbench install swebench4"):
        harness4.find(tmp_path)


def test_a_wrong_environment_variable_is_an_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SWEBENCH_VENV", str(tmp_path))
    with pytest.raises(HarnessMissingError, match="no bin/python"):
        harness4.find(tmp_path)
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "swebench-3.0.0.dist-info").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    with pytest.raises(HarnessMissingError, match=r"swebench 3\.0\.0"):
        harness4.find(tmp_path)
