"""Runs that nobody ran: whole folders of cases, made by the records' own interface."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evaluation.outcomes import POLICY, Ending, Outcome
from records.case import CaseFolder
from records.plan import PlannedCase
from records.run import RunDirectory

SETTINGS: dict[str, Any] = {"model": "acme/big-1", "adapter": "full", "egress": "gateway", "gateway": "on"}
JUDGED = {Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.TIMEOUT, Outcome.APPLY_FAILED}


def made_up_run(run: RunDirectory, claws: Iterable[str] = ("nanobot",), **settings: object) -> RunDirectory:
    """A run that has its manifest, and no case yet."""
    run.open(
        {
            "settings": SETTINGS | settings,
            "claws": {claw: {"version": "1.2.3", "prompt": "default.txt"} for claw in claws},
            "limits": {},
        }
    )
    return run


def made_up_case(
    run: RunDirectory,
    asked: PlannedCase,
    outcome: Outcome = Outcome.RESOLVED,
    *,
    repo: str = "acme/tool",
    finish: bool = True,
    plan: bool = True,
    **facts: object,
) -> CaseFolder:
    """A case with all that a real one leaves, as far as its outcome lets it get."""
    if plan:
        run.plan.add([asked])
    case = run.case(*asked)
    case.begin()
    case.keep_manifest({"instance_id": asked.instance_id, "repo": repo, "harness": "swebench 5.0.2"})
    case.write_text("prompt.txt", f"Solve {asked.instance_id}.\n")
    case.write_text("agent_stdout.log", "I changed a line.\n")
    case.write_text("agent_stderr.log", "")
    case.write_text("requests.jsonl", json.dumps({"status": 200, "ending": "ok", "latency": 1.5}) + "\n")
    (case.path / "session").mkdir()
    case.write_text("session/talk.jsonl", json.dumps({"role": "assistant", "content": "Done."}) + "\n")
    patch = "" if outcome is Outcome.EMPTY_PATCH else patch_of(asked)
    known = {"model_name_or_path": f"{asked.claw}/acme/big-1", "contender": asked.claw}
    whole: Mapping[str, Any] = {
        **known,
        "is_final": True,
        "ending": Ending.FINISHED,
        "seconds": {"agent": 60.0},
        "requests": 1,
        "turns": 1,
        "tokens": {"input": 10, "cache_read": 0, "cache_write": 0, "output": 5},
        "cost": None,
    }
    if outcome is not Outcome.INFRASTRUCTURE:
        case.keep_export(whole, patch, patch, [])
    if patch and outcome in JUDGED:
        _judged(case, patch, outcome)
    if finish:
        ended = not POLICY[outcome].run_again
        run.finish(case, {**whole, "instance_id": asked.instance_id, "outcome": outcome, **facts}, ended=ended)
    return case


def _judged(case: CaseFolder, patch: str, outcome: Outcome) -> None:
    (case.path / "evaluation").mkdir()
    case.write_text("evaluation/patch.diff", patch)
    case.write_text("evaluation/run_instance.log", "Creating container\n")
    if outcome is Outcome.APPLY_FAILED:
        return
    case.write_text("evaluation/eval.sh", "#!/bin/bash\n")
    case.write_text("evaluation/test_output.txt", ">>>>> Start Test Output\nok\n>>>>> End Test Output\n")
    verdict = {"patch_exists": True, "resolved": outcome is Outcome.RESOLVED}
    case.write_text("evaluation/report.json", json.dumps({case.instance_id: verdict}))


def patch_of(asked: PlannedCase) -> str:
    """A small patch, of this case alone."""
    return (
        "diff --git a/tool.py b/tool.py\n--- a/tool.py\n+++ b/tool.py\n@@ -1 +1 @@\n"
        f"-x = 1\n+x = {asked.sample}  # {asked.instance_id}\n"
    )
