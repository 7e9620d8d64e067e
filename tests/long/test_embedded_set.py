"""The whole embedded set: every claw resolves it where the model knows the fix, and attacks find nothing in any image."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench_run import containers_of, fresh_id, run_bench

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


@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
@pytest.mark.parametrize(
    ("model", "outcome"), [("wrong", "unresolved"), ("tamper", "resolved"), ("git", "empty_patch")]
)
def test_each_image_gives_the_outcome_of_the_model(model: str, outcome: str, tmp_path: Path) -> None:
    run = run_bench(
        tmp_path, fresh_id(model), "-n", "2", "-m", "demo", "-k", "nanobot", f"--model=scripted:{model}"
    )
    assert run.outcomes() == dict.fromkeys(sorted(embedded_ids()), outcome), run.output
