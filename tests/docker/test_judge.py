"""Predictions of other tools, in their own formats, judged as the official command judges them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.bench_run import ROOT, BenchRun, containers_of, fresh_id
from support.user_commands import documented, run

from demo.task_images import TASK_REPO, image_name
from evaluation.instances import load_instance
from evaluation.lists import by_id
from records.models import CaseManifest, CaseRecord, RunManifest, read_record

pytestmark = pytest.mark.docker

RIGHT, WRONG, EMPTY, BROKEN = "demo__csvline-19", "demo__ledgerlite-204", "demo__spanset-44", "demo__hmap-73"
VERDICTS = {RIGHT: "resolved", WRONG: "unresolved", EMPTY: "empty_patch", BROKEN: "apply_failed"}


def gold(instance_id: str) -> str:
    return (TASK_REPO / "tasks" / instance_id / "gold.patch").read_text()


def new_file(name: str) -> str:
    """A patch that applies, and mends nothing."""
    return f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"


PATCHES = {RIGHT: gold(RIGHT), WRONG: new_file("notes.txt"), EMPTY: None, BROKEN: gold(RIGHT)}


def as_mini_swe_agent(folder: Path) -> Path:
    """Its `preds.json`: an object by instance id."""
    rows = {
        name: {"model_name_or_path": "openai/gpt-5-mini", "instance_id": name, "model_patch": patch}
        for name, patch in PATCHES.items()
    }
    folder.joinpath("preds.json").write_text(json.dumps(rows, indent=2))
    return folder / "preds.json"


def as_swe_agent(folder: Path) -> Path:
    """A submission's folder with JSON lines that have keys of SWE-agent's own."""
    submission = folder / "submission"
    submission.mkdir()
    row = {
        "model_name_or_path": "swe-agent",
        "instance_id": RIGHT,
        "model_patch": gold(RIGHT),
        "exit_status": "ok",
    }
    submission.joinpath("all_preds.jsonl").write_text(json.dumps(row) + "\r\n")
    return submission


def official_verdicts(predictions: Path, folder: Path) -> dict[str, str]:
    """What `swebench eval` says about them, from the same rows."""
    rows = folder / "rows.json"
    instances = [load_instance(by_id()[name], demo=TASK_REPO).model_dump() for name in VERDICTS]
    # a user's rows name images of a registry: these are here, and the command would look there first
    rows.write_text(json.dumps([row | {"image": image_name(row["instance_id"])} for row in instances]))
    run_id = fresh_id("official")  # by it, and the instance, the engine knows its container
    words = ["eval", str(rows), "-p", str(predictions), "-j", "2", "--run-id", run_id]
    swebench = str(Path(sys.executable).parent / "swebench")
    for _ in range(5):
        done = subprocess.run([swebench, *words], cwd=folder, capture_output=True, text=True, check=False)
        # it asks the engine for all containers, then for each: one that another run removes in between ends it
        if "No such container" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    (report,) = folder.glob(f"*.{run_id}.json")
    told: dict[str, Any] = json.loads(report.read_text())
    kinds = {
        "resolved": "resolved",
        "unresolved": "unresolved",
        "empty_patch": "empty_patch",
        "error": "apply_failed",
    }
    return {name: outcome for kind, outcome in kinds.items() for name in told[f"{kind}_ids"]}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    """The commands of docs/judging.md, with a file of one tool and a folder of another."""
    folder = tmp_path_factory.mktemp("judged")
    mini, swe = as_mini_swe_agent(folder), as_swe_agent(folder)
    ours = {"preds.json": [f"mini={mini}", str(swe)]}
    judge, verify, regrade = documented(ROOT / "docs" / "judging.md")
    done = run([*(new for word in judge for new in ours.get(word, [word])), f"--artifacts={folder}"])
    assert "theirs (ended): sound" in run([*verify, f"--artifacts={folder}"]).stdout
    assert "3 of 3 verdicts from test logs are the same" in run([*regrade, f"--artifacts={folder}"]).stdout
    return BenchRun(folder / "theirs", done.returncode, done.stdout)


def record(judged: BenchRun, claw: str, name: str) -> CaseRecord:
    found = read_record(judged.folder / claw / name / "metadata.json", CaseRecord)
    assert found is not None, judged.output
    return found


def test_verdicts_are_those_of_the_official_command(judged: BenchRun, tmp_path: Path) -> None:
    ours = {name: str(record(judged, "mini", name).outcome) for name in VERDICTS}
    assert ours == VERDICTS == official_verdicts(judged.folder.parent / "preds.json", tmp_path)
    assert record(judged, "swe_agent", RIGHT).outcome == "resolved"
    assert judged.exit_code == 1, judged.output
    assert judged.counts == {"passed": 2, "failed": 3}
    assert containers_of(judged.folder.name) == []


def test_what_is_unknown_is_recorded_as_unknown(judged: BenchRun) -> None:
    manifest = read_record(judged.folder / "manifest.json", RunManifest)
    assert manifest is not None
    assert (manifest.settings.made_elsewhere, manifest.settings.model) == (True, "unknown")
    assert "max_turns" not in (manifest.settings.model_extra or {})
    case = read_record(judged.folder / "mini" / RIGHT / "manifest.json", CaseManifest)
    assert case is not None
    assert (case.prompt, case.model) == ("", {})
    assert case.history["foreign"] == 0
    told = record(judged, "mini", RIGHT)
    assert told.model_name_or_path == "openai/gpt-5-mini"
    assert (told.requests, told.turns, told.cost and told.cost.priced) == (None, None, None)
    assert "model, prompt, budget and cost are unknown" in judged.output


def test_a_judged_run_is_a_run(judged: BenchRun, tmp_path: Path) -> None:
    where = [judged.folder.name, f"--artifacts={judged.folder.parent}"]
    refused = run(["clawbench", "export", *where, f"--to={tmp_path}"])
    assert (refused.returncode, "made elsewhere" in refused.stdout) == (2, True)
    again = run(["clawbench", "compare", *where])
    assert (again.returncode, "Not comparable" in again.stdout) == (2, True)
    lines = (judged.folder / "state.jsonl").read_text().count('"begun"')
    preds = judged.folder.parent / "preds.json"
    resumed = run(["clawbench", "judge", f"mini={preds}", f"--run-id={where[0]}", where[1], "-k", "mini"])
    assert "1 passed, 3 failed" in resumed.stdout or "3 failed, 1 passed" in resumed.stdout, resumed.stdout
    assert (judged.folder / "state.jsonl").read_text().count('"begun"') == lines
    log = judged.folder / "mini" / RIGHT / "evaluation" / "test_output.txt"
    log.write_text(re.sub(r"\.\.\. ok$", "... FAILED", log.read_text(), flags=re.MULTILINE))
    regraded = run(["clawbench", "regrade", *where])
    assert f"mini-{RIGHT}: resolved before, unresolved now" in regraded.stdout
    assert regraded.returncode == 1
    preds.write_text(preds.read_text() + "\n")
    changed = run(["clawbench", "judge", f"mini={preds}", f"--run-id={where[0]}", where[1]])
    assert (changed.returncode, "claws.mini.version" in changed.stdout) == (2, True), changed.stdout
