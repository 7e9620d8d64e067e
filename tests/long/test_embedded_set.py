"""The whole embedded set: every claw resolves it where the model knows the fix, and attacks find nothing in any image.

The same for the diff in each claw's final message, and for the parts of the adapter.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.bench_run import ROOT, containers_of, fresh_id, run_bench
from support.user_commands import run as run_command

from adapters.registry import CLAWS, installed
from demo.task_images import embedded_ids

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("claw", CLAWS)
def test_all_ten_pass(claw: str, tmp_path: Path) -> None:
    if not installed(claw):
        pytest.skip(f"{claw} is not installed: clawbench install {claw}")
    run = run_bench(tmp_path, fresh_id(f"all-{claw}"), "-n", "2", "-m", "demo", "-k", claw)
    assert run.counts == {"passed": 10}, run.output
    assert run.outcomes() == dict.fromkeys(sorted(embedded_ids()), "resolved")
    assert containers_of(run.folder.name) == []


@pytest.mark.parametrize("claw", CLAWS)
def test_every_claw_is_collected_in_three_ways(claw: str, tmp_path: Path) -> None:
    """What the model typed comes through each claw's session: an intact diff is exact, byte for byte."""
    if not installed(claw):
        pytest.skip(f"{claw} is not installed: clawbench install {claw}")
    run = run_bench(
        tmp_path,
        fresh_id(f"paired-{claw}"),
        *("-n", "2", "-m", "demo", "-k", claw),
        *("--collect=paired", "--model=scripted:typist"),
    )
    assert run.outcomes() == dict.fromkeys(sorted(embedded_ids()), "resolved"), run.output
    ways = {(arm["arm"], arm["kind"], arm["verdict"]) for case in run.cases().values() for arm in case["arms"]}
    assert ways == {("message-strict", "exact", "resolved"), ("message-fuzzy", "exact", "resolved")}, run.output


@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
@pytest.mark.parametrize(
    ("model", "outcome"), [("wrong", "unresolved"), ("tamper", "resolved"), ("git", "empty_patch")]
)
def test_each_image_gives_the_outcome_of_the_model(model: str, outcome: str, tmp_path: Path) -> None:
    run = run_bench(
        tmp_path, fresh_id(model), "-n", "2", "-m", "demo", "-k", "nanobot", f"--model=scripted:{model}"
    )
    assert run.outcomes() == dict.fromkeys(sorted(embedded_ids()), outcome), run.output


@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_the_documented_factorial_with_two_tasks(tmp_path: Path) -> None:
    """The typist's edits are right and its diffs wrong: all that the adapter is worth is the export."""
    page = (ROOT / "docs" / "collection-study.md").read_text()
    (block,) = re.findall(r"^```sh\n(for parts .*?)^```$", page, re.MULTILINE | re.DOTALL)
    block = block.replace("-k nanobot", f"-k 'nanobot and (cronspan or ledgerlite)' --artifacts={tmp_path}")
    block = block.replace("error=0.7", "error=1").replace("artifacts/parts-*", f"{tmp_path}/parts-* --json")
    done = run_command(["sh", "-c", block])
    (found,) = json.loads(done.stdout[done.stdout.rindex("\n[\n") :])
    assert len(found["instances"]) == 2
    assert {one["part"]: one["worth"] for one in found["worths"]} == {
        "preparation": 0,
        "prompt": 0,
        "export": 1,
        "cleaning": 0,
    }
