"""Runs that nobody ran: whole folders of cases, made by the records' own interface, and as sound as real ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from clawbench.run.usage import use_in
from evaluation.outcomes import Ending, Outcome, Verdict
from records.case_folder import CaseFolder
from records.case_id import CaseId
from records.models import CaseManifest, CaseRecord, ExportRecord, RunManifest
from records.run_folder import RunDirectory

HARNESS = "swebench 5.0.2"
SETTINGS: dict[str, Any] = {
    "model": "acme/big-1",
    "collect": "workspace",
    "network": "gateway",
    "harness": HARNESS,
}
CLAW = {"version": "1.2.3", "prompt": "default.txt", "prompt_sha256": "0" * 64}
ENDED: dict[Outcome, tuple[Ending, Verdict]] = {
    Outcome.RESOLVED: (Ending.FINISHED, Verdict.RESOLVED),
    Outcome.UNRESOLVED: (Ending.FINISHED, Verdict.UNRESOLVED),
    Outcome.EMPTY_PATCH: (Ending.FINISHED, Verdict.NOT_JUDGED),
    Outcome.APPLY_FAILED: (Ending.FINISHED, Verdict.APPLY_FAILED),
    Outcome.TIMEOUT: (Ending.TIMEOUT, Verdict.UNRESOLVED),
    Outcome.COST_LIMIT: (Ending.COST_LIMIT, Verdict.UNRESOLVED),
    Outcome.AGENT_ERROR: (Ending.AGENT_ERROR, Verdict.UNRESOLVED),
    Outcome.RUN_COST_LIMIT: (Ending.RUN_COST_LIMIT, Verdict.NOT_JUDGED),
    Outcome.INFRASTRUCTURE: (Ending.INFRASTRUCTURE, Verdict.NOT_JUDGED),
}


def made_up_run(run: RunDirectory, claws: Iterable[str] = ("nanobot",), **settings: object) -> RunDirectory:
    """A run that has its manifest, and no case yet."""
    run.open(made_up_manifest(claws, **settings))
    return run


def made_up_manifest(claws: Iterable[str] = (), **settings: object) -> RunManifest:
    """The manifest of such a run."""
    return RunManifest.model_validate({"settings": SETTINGS | settings, "claws": dict.fromkeys(claws, CLAW)})


def made_up_export(case: CaseFolder, patch: str, **facts: object) -> None:
    """A case that has just its export."""
    case.begin()
    case.keep_manifest(_manifest(case.path.parent.parent.name, case.id))
    made = {"model_name_or_path": f"{case.id.claw}/acme/big-1", "is_final": True, "ending": Ending.FINISHED}
    case.keep_export(ExportRecord.model_validate({**made, **facts}), patch, patch, [])


def made_up_record(case: CaseId, **facts: object) -> CaseRecord:
    """The record of a case that was resolved, but for what is told."""
    made = {
        "claw": case.claw,
        "agent_label": case.claw,
        "instance_id": case.instance_id,
        "sample": case.sample,
        "outcome": Outcome.RESOLVED,
    }
    return CaseRecord.model_validate({**made, **facts})


def made_up_case(
    run: RunDirectory,
    asked: CaseId,
    outcome: Outcome = Outcome.RESOLVED,
    *,
    finish: bool = True,
    plan: bool = True,
    files: Mapping[str, str] | None = None,
    **facts: object,
) -> CaseFolder:
    """A case with all that a real one leaves, as far as its outcome lets it get.

    Args:
        run: gets it.
        asked: which case.
        outcome: what it counts as.
        finish: whether it got to its outcome.
        plan: whether the run's plan is to be told.
        files: what is in its folder beside, or instead of, what is put there.
        facts: what its export and metadata say beside, or instead of, what they would.
    """
    if plan:
        run.plan.add([asked])
    case = run.case(asked)
    case.begin()
    case.keep_manifest(_manifest(run.run_id, asked))
    ending, verdict = ENDED[outcome]
    patch = "" if outcome is Outcome.EMPTY_PATCH else patch_of(asked)
    judged = {} if verdict is Verdict.NOT_JUDGED else _judged(asked.instance_id, patch, verdict)
    for name, text in {**_LEFT, "prompt.txt": f"Solve {asked.instance_id}.\n", **judged, **(files or {})}.items():
        (case.path / name).parent.mkdir(exist_ok=True)
        case.write_text(name, text)
    whole = ExportRecord.model_validate(
        {
            **use_in(case.requests, False).model_dump(),
            "model_name_or_path": f"{asked.claw}/acme/big-1",
            "is_final": ending.is_final,
            "ending": ending,
            "seconds": {"agent": 60.0},
            "patch_bytes": len(patch.encode()),
            **facts,
        }
    )
    if outcome is not Outcome.INFRASTRUCTURE:
        case.keep_export(whole, patch, patch, [])
    if finish:
        told = {"outcome": outcome, "verdict": verdict, "finished": "2026-11-30T04:00:00Z"}
        run.finish(case, made_up_record(asked, **(case.export() or whole).model_dump(), **told))
    return case


def patch_of(asked: CaseId) -> str:
    """A small patch, of this case alone."""
    return (
        "diff --git a/tool.py b/tool.py\n--- a/tool.py\n+++ b/tool.py\n@@ -1 +1 @@\n"
        f"-x = 1\n+x = {asked.sample}  # {asked.instance_id}\n"
    )


_LEFT = {
    "agent_stdout.log": "I changed a line.\n",
    "agent_stderr.log": "",
    "requests.jsonl": json.dumps(
        {
            "time": "2026-11-30T04:00:00.000+00:00",
            "method": "POST",
            "path": "/v1/chat/completions",
            "model": "big-1",
            "replied": True,
            "status": 200,
            "ending": "ok",
            "finish_reason": "stop",
            "tokens": {"input": 10, "cache_read": 0, "cache_write": 0, "output": 5, "reasoning": 0},
            "latency": 1.5,
        }
    )
    + "\n",
    "session/talk.jsonl": json.dumps({"role": "assistant", "content": "Done."}) + "\n",
}


def _manifest(run_id: str, asked: CaseId) -> CaseManifest:
    return CaseManifest.model_validate(
        {
            "run_id": run_id,
            "claw": {"name": asked.claw, "version": CLAW["version"]},
            "instance_id": asked.instance_id,
            "sample": asked.sample,
            "repo": "acme/tool",
            "prompt": CLAW["prompt"],
            "prompt_template_sha256": CLAW["prompt_sha256"],
            "harness": HARNESS,
        }
    )


def _judged(instance_id: str, patch: str, verdict: Verdict) -> dict[str, str]:
    """What the official harness leaves of a patch that it judged."""
    if verdict is Verdict.APPLY_FAILED:
        error = "swebench.harness.utils.EvaluationError: Error in evaluation for"
        why = f"{error} {instance_id}: >>>>> Patch Apply Failed"
        return {"evaluation/patch.diff": patch, "evaluation/run_instance.log": f"{why}:\nnot a patch\n"}
    report = {
        "patch_exists": True,
        "patch_successfully_applied": True,
        "resolved": verdict is Verdict.RESOLVED,
        "tests_status": {},
    }
    return {
        "evaluation/patch.diff": patch,
        "evaluation/run_instance.log": "Creating container\n",
        "evaluation/eval.sh": "#!/bin/bash\n",
        "evaluation/test_output.txt": ">>>>> Start Test Output\nok\n>>>>> End Test Output\n",
        "evaluation/report.json": json.dumps({instance_id: report}),
    }
