"""Each installed claw is recorded at work on an embedded task and replayed; changed words depart and say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.bench_run import fresh_id, run_bench

from adapters.registry import CLAWS, installed

TASK = "demo__cronspan-118"
RECORDED = "You are working on a software repository"
CHANGED = "You work on a software repository"
needed = [
    pytest.param(claw, marks=pytest.mark.skipif(not installed(claw), reason=f"{claw} is not installed"))
    for claw in CLAWS
]


@pytest.mark.docker
@pytest.mark.parametrize("claw", needed)
def test_a_claw_is_recorded_and_replayed(claw: str, tmp_path: Path) -> None:
    chosen = ("-k", f"{claw} and cronspan")
    recorded = run_bench(tmp_path, fresh_id("recorded"), *chosen, "--model", "scripted:oracle", "--record")
    assert recorded.outcomes() == {TASK: "resolved"}, recorded.output
    replayed = run_bench(tmp_path, fresh_id("replayed"), *chosen, "--model", f"replay:{recorded.folder}")
    assert replayed.outcomes() == {TASK: "resolved"}, replayed.output
    assert patch(replayed.folder / claw) == patch(recorded.folder / claw)
    kept = ("requests", "turns", "tokens", "removed_tools", "stop_reasons")
    rows = [run.cases()[TASK] for run in (recorded, replayed)]
    assert [rows[0][name] for name in kept] == [rows[1][name] for name in kept]

    # the words of the prompt are others than when it was recorded
    cassette = (recorded.folder / claw / TASK / "cassette.jsonl").read_text()
    assert RECORDED in cassette
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / f"{claw}-{TASK}.jsonl").write_text(cassette.replace(RECORDED, CHANGED))
    departed = run_bench(tmp_path, fresh_id("departed"), *chosen, "--model", f"replay:{tmp_path / 'changed'}")
    assert departed.exit_code == 1, departed.output
    assert departed.outcomes() == {TASK: "agent_error"}
    assert "it did not behave as recorded: this request is not in the cassette; it differs from request 1" in (
        departed.output.replace("\n", " ")
    )
    lines = (departed.folder / claw / TASK / "requests.jsonl").read_text().splitlines()
    told = [row["error"] for row in map(json.loads, lines) if row["method"] == "POST"]
    assert told
    assert all("You work on a software" in error and "You are working on" in error for error in told)


def patch(claw_folder: Path) -> bytes:
    return (claw_folder / TASK / "git.patch").read_bytes()
