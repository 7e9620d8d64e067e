"""The official harness as this suite calls it: real verdicts on real patches."""

from __future__ import annotations

import io
import re
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import get_args

import docker
import pytest
from support.waiting import wait_for

from adapters.runtimes import default_home
from common.errors import CaseOutcome
from demo.task_images import TASK_REPO, ensure_image, image_name
from evaluation.harness import EvaluationError, Judgement, judge
from evaluation.harness_client import PIDS
from evaluation.instances import Instance, InstanceError, checked, load_instance
from evaluation.lists import LANGUAGE_GROUPS, listed_instances
from evaluation.outcomes import POLICY, Ending, Outcome, Verdict, outcome_of
from workspace.owner import labels
from workspace.prepare import PreparedImage, prepare
from workspace.running import ended_from_within

ID = "demo__cronspan-118"
LISTED = next(listed for listed in listed_instances() if listed.instance_id == ID)

CHEAT = """\
diff --git a/conftest.py b/conftest.py
new file mode 100644
--- /dev/null
+++ b/conftest.py
@@ -0,0 +1,8 @@
+import subprocess
+def git(*words):
+    return subprocess.run(["git", *words], capture_output=True, text=True).stdout
+for commit in git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines():
+    name, kind = commit.split()
+    if kind == "commit" and not git("merge-base", name, "HEAD").strip() == name:
+        git("checkout", name, "--", "cronspan")
+        break
"""


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    connected = docker.from_env(timeout=600)
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def instance() -> Instance:
    return load_instance(LISTED, demo=TASK_REPO)


@pytest.fixture(scope="module")
def prepared(client: docker.DockerClient, instance: Instance) -> PreparedImage:
    ensure_image(client, ID, cache=default_home(), say=print)
    return prepare(
        client,
        image_name(ID),
        instance_id=ID,
        base_commit=instance.base_commit,
        locks=default_home() / "locks",
        labels=labels("test-evaluation"),
        say=print,
    )


@pytest.mark.docker
class TestJudge:
    @pytest.fixture
    def verdict_on(
        self, client: docker.DockerClient, instance: Instance, prepared: PreparedImage, tmp_path: Path
    ) -> object:
        def call(
            patch: str,
            image: str = prepared.evaluation,
            timeout: float = 300,
            run: str = "test-evaluation",
            **row: str,
        ) -> Judgement:
            return judge(
                instance.model_copy(update=row),
                patch,
                client=client,
                image=image,
                model_name="claw/model",
                timeout=timeout,
                folder=tmp_path / "evaluation",
                labels=labels(run),
                ended_from_within=partial(ended_from_within, client),
            )

        return call

    def test_gold_resolves_and_the_harness_logs_are_kept(self, verdict_on, instance, tmp_path) -> None:
        assert verdict_on(instance.patch).verdict is Verdict.RESOLVED
        kept = {path.name for path in (tmp_path / "evaluation").iterdir()}
        assert {"report.json", "run_instance.log", "test_output.txt", "patch.diff", "eval.sh"} <= kept

    def test_the_tests_can_not_reach_beyond_their_container(self, verdict_on, instance, tmp_path) -> None:
        """What the patch brings runs here: no SYS_ADMIN, no network but loopback, no end of processes and memory."""
        probes = """
        echo "CAPABILITIES $(sed -n 's/^CapEff:.//p' /proc/self/status)"
        echo "NETWORK $(ls /sys/class/net)"
        if mount -t tmpfs none /mnt || mount -t cgroup -o pids none /mnt; then echo MOUNTED; fi
        if echo x >/sys/fs/cgroup/pids/release_agent || mkdir /sys/fs/cgroup/pids/x; then echo CGROUP; fi
        echo "PIDS $(cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null)"
        """
        lines = "\n".join(line.strip() for line in probes.splitlines())
        assert verdict_on(instance.patch, eval_script=instance.eval_script + lines).verdict is Verdict.RESOLVED
        output = (tmp_path / "evaluation" / "test_output.txt").read_text()
        said = dict(re.findall(r"^(CAPABILITIES|NETWORK|PIDS) (\S+)$", output, re.MULTILINE))
        assert not int(said["CAPABILITIES"], 16) & 1 << 21, "SYS_ADMIN"
        assert (said["NETWORK"], said["PIDS"]) == ("lo", str(PIDS))
        assert not re.search(r"^(MOUNTED|CGROUP)$", output, re.MULTILINE)

    def test_an_image_with_an_entry_point_is_judged(self, verdict_on, instance, client, prepared) -> None:
        text = f'FROM {prepared.evaluation}\nENTRYPOINT ["/bin/false"]\n'
        image, _ = client.images.build(fileobj=io.BytesIO(text.encode()), labels=labels("test-evaluation"))
        try:
            assert verdict_on(instance.patch, image.id).verdict is Verdict.RESOLVED
        finally:
            client.images.remove(image.id, force=True)

    def test_an_edit_that_fixes_nothing_is_unresolved_and_names_the_tests(self, verdict_on, instance) -> None:
        nothing = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"
        judgement = verdict_on(nothing)
        assert judgement.verdict is Verdict.UNRESOLVED
        assert set(judgement.failing_tests) == set(instance.FAIL_TO_PASS)

    def test_garbage_is_apply_failed_with_the_reason(self, verdict_on) -> None:
        judgement = verdict_on("this is no patch\n")
        assert judgement.verdict is Verdict.APPLY_FAILED
        assert judgement.detail

    def test_a_patch_with_the_harness_own_markers_is_judged(self, verdict_on, instance) -> None:
        words = ">>>>> Patch Apply Failed", "Test timed out after 1 seconds.", ">>>>> End Test Output"
        added = "".join(f"+{line}\n" for line in words)
        head = "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1,3 @@\n"
        note = head + added
        assert verdict_on(instance.patch + note).verdict is Verdict.RESOLVED
        assert verdict_on(note).verdict is Verdict.UNRESOLVED

    def test_a_file_that_is_not_utf_8_is_judged(self, verdict_on, instance, client, prepared) -> None:
        edit = r"""printf 'caf\351\n' >> README.md; echo '* -diff' > .git/info/attributes; git diff --binary"""
        said = client.containers.run(prepared.tag, ["sh", "-c", edit], remove=True, working_dir="/testbed")
        assert verdict_on(instance.patch + said.decode()).verdict is Verdict.RESOLVED
        assert verdict_on(said.decode()).verdict is Verdict.UNRESOLVED

    def test_another_patch_never_gets_an_old_verdict(self, verdict_on, instance) -> None:
        assert verdict_on(instance.patch).verdict is Verdict.RESOLVED
        assert verdict_on("this is no patch\n").verdict is Verdict.APPLY_FAILED

    def test_a_patch_that_fetches_the_fix_from_git_while_judged_finds_none(self, verdict_on) -> None:
        assert verdict_on(CHEAT, image_name(ID)).verdict is Verdict.RESOLVED, "the source image does leak it"
        assert verdict_on(CHEAT).verdict is Verdict.UNRESOLVED

    def test_endless_tests_are_unresolved(self, verdict_on) -> None:
        endless = (
            "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
            "@@ -0,0 +1,2 @@\n+import time\n+time.sleep(600)\n"
        )
        judgement = verdict_on(endless, timeout=2)
        assert judgement.verdict is Verdict.UNRESOLVED
        assert judgement.detail == "the tests did not finish in time"

    def test_a_missing_image_gives_no_verdict(self, verdict_on, instance) -> None:
        with pytest.raises(EvaluationError, match="no verdict"):
            verdict_on(instance.patch, "clawbench-evaluation:there-is-no-such-image")

    @pytest.mark.parametrize(
        ("parser", "why"),
        [
            ("parse_log_of_a_later_version", "parse_log_of_a_later_version"),
            ("parse_log_django", "index out of range"),
        ],
    )
    def test_a_harness_that_fails_while_grading_gives_no_verdict(
        self, verdict_on, instance, parser: str, why: str
    ) -> None:
        """The tests ran, so it would look as if the patch had failed them."""
        odd = (
            "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
            '@@ -0,0 +1,3 @@\n+import os\n+with open(f"/proc/{os.getppid()}/fd/1", "w") as past_capture:\n'
            '+    past_capture.write("\\nERROR:\\n")\n'
        )
        with pytest.raises(EvaluationError, match=f"failed while grading .*{why}"):
            verdict_on(instance.patch + odd, log_parser=parser)

    def test_tests_that_end_their_own_container_have_not_passed(self, verdict_on) -> None:
        """Else a patch could turn its failure into an infrastructure error, which does not count."""
        fatal = (
            "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
            '@@ -0,0 +1,2 @@\n+import os\n+os.system("kill -9 -1")\n'
        )
        judgement = verdict_on(fatal)
        assert judgement.verdict is Verdict.UNRESOLVED
        assert judgement.detail == "the tests ended their own container"

    def test_a_container_that_is_ended_from_outside_gives_no_verdict(self, verdict_on, client) -> None:
        endless = (
            "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
            '@@ -0,0 +1,3 @@\n+import time\n+open("/at-work", "w").close()\n+time.sleep(600)\n'
        )
        run = f"test-evaluation-{uuid.uuid4().hex}"
        over = threading.Event()

        def is_killed() -> bool:
            """Kill the container as soon as the tests are at work."""
            found = client.containers.list(filters={"label": f"clawbench.run={run}"}, ignore_removed=True)
            at_work = [one for one in found if one.exec_run(["test", "-e", "/at-work"]).exit_code == 0]
            for container in at_work:
                container.kill()
            return bool(at_work) or over.is_set()

        killer = threading.Thread(target=wait_for, args=(is_killed, "the tests to begin"))
        killer.start()
        try:
            with pytest.raises(EvaluationError):
                verdict_on(endless, run=run)
        finally:
            over.set()
            killer.join()


class TestOutcomes:
    @pytest.mark.parametrize("ending", list(Ending))
    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_every_ending_and_verdict_has_one_outcome(self, ending: Ending, verdict: Verdict) -> None:
        outcome = outcome_of(ending, verdict)
        if ending in {Ending.INFRASTRUCTURE, Ending.RUN_COST_LIMIT}:
            assert outcome == ending
        elif verdict is Verdict.RESOLVED:
            assert outcome is Outcome.RESOLVED, "a resolving patch passes however the claw ended"
        else:
            assert not POLICY[outcome].passes

    def test_only_infrastructure_and_the_run_limit_are_errors_run_again_and_not_counted(self) -> None:
        others = {Outcome.INFRASTRUCTURE, Outcome.RUN_COST_LIMIT}
        assert {o for o in Outcome if POLICY[o].is_error} == others
        assert {o for o in Outcome if POLICY[o].run_again} == others
        assert {o for o in Outcome if not POLICY[o].counts} == others
        assert {o for o in Outcome if not POLICY[o].is_judged} == others
        assert set(get_args(CaseOutcome)) == others, "the outcomes that an error can end a case with"


class TestLists:
    def test_the_350_are_300_and_50_in_eight_groups_and_lite_has_ten_of_each(self) -> None:
        real = [listed for listed in listed_instances() if not listed.embedded]
        assert len({listed.instance_id for listed in real}) == len(real) == 350
        assert sum(listed.set_name == "multilingual" for listed in real) == 300
        assert {listed.language_group for listed in real} == set(LANGUAGE_GROUPS)
        lite = [listed for listed in real if listed.lite]
        assert {group: sum(listed.language_group == group for listed in lite) for group in LANGUAGE_GROUPS} == (
            dict.fromkeys(LANGUAGE_GROUPS, 10)
        )

    def test_the_embedded_set_has_ten_tasks_in_all_eight_groups(self) -> None:
        demo = [listed for listed in listed_instances() if listed.embedded]
        assert len(demo) == 10
        assert {listed.language_group for listed in demo} == set(LANGUAGE_GROUPS)


class TestRows:
    def row(self, **changes: object) -> dict[str, object]:
        return load_instance(LISTED, demo=TASK_REPO).model_dump() | changes

    def test_lists_as_json_strings_are_read(self) -> None:
        assert checked(self.row(**{"FAIL_TO_PASS": '["a", "b"]'})).FAIL_TO_PASS == ["a", "b"]

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"FAIL_TO_PASS": []}, "any patch would count"),
            ({"FAIL_TO_PASS": "[broken"}, "Expecting value"),
            ({"base_commit": "main"}, "base_commit"),
            ({"patch": None}, "patch"),
        ],
    )
    def test_a_malformed_row_is_refused(self, changes: dict[str, object], said: str) -> None:
        with pytest.raises(InstanceError, match=said):
            checked(self.row(**changes))
