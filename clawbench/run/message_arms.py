"""The diff in a claw's final message: what it gives if it is applied, and what the official harness says about that."""

from __future__ import annotations

import shlex
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.collection import FUZZY, STRICT, Arm, Change, Kind, kind_of
from evaluation.judgement import Judgement
from evaluation.outcomes import Verdict
from records.case_folder import APPLIED_PATCH, MESSAGE_EVALUATION, MESSAGE_PATCH, STRICT_REFUSAL
from records.models import AgentResult, ArmRecord
from workspace.export import Export, export
from workspace.prepare import WORKDIR
from workspace.start_tree import StartTree
from workspace.throwaway import run_script, throwaway

if TYPE_CHECKING:
    from clawbench.run.case import Case

_REFUSED = "refused"
_NO_DIFF = "no diff in its final message"


def strict_refusal(case: Case, patch: str) -> str:
    """Why `git apply` refuses a patch; "" if it does not.

    Args:
        case: the case.
        patch: the diff in the message, which is not empty.

    Raises:
        WorkspaceError: the image could not be prepared, or the container failed.
    """
    number, why, _ = _applied(case, patch, STRICT)
    return "" if number == 0 else f"{STRICT_REFUSAL}: {why}"


def judged(case: Case, result: AgentResult, workspace: Judgement) -> tuple[ArmRecord, ...]:
    """What the diff in the message gives in each of its two ways, beside the changes in the repository.

    The diff is applied in a fresh container, by the commands of the official harness in its order. If the first one
    succeeds, both ways give the same. The official harness judges the diff unless it was refused, or gives exactly the
    files that the claw left.

    Args:
        case: the case; its export is on disk.
        result: the export.
        workspace: the verdict on the changes in the repository.

    Raises:
        WorkspaceError, ExportError: the container or the export failed.
        EvaluationError: the harness gave no verdict.
    """
    patch = (case.folder.path / MESSAGE_PATCH).read_bytes().decode()
    if not patch:
        return tuple(_refused(arm, _NO_DIFF) for arm in (Arm.STRICT, Arm.FUZZY))
    began = time.monotonic()
    with case.phase("collection", "applying the diff in the final message"):
        number, why, got = _applied(case, patch, FUZZY)
    seconds = round(time.monotonic() - began, 3)
    case.folder.write_text(APPLIED_PATCH, got.raw)
    wanted = Change(result.patch_tree, case.folder.patch().encode())
    kind = kind_of(wanted, Change(got.final_tree, got.raw.encode()), is_applied=number is not None)
    if number is None:
        fuzzy = ArmRecord(arm=Arm.FUZZY, kind=kind, verdict=Verdict.APPLY_FAILED, detail=why, seconds=seconds)
    else:
        verdict = (
            workspace
            if kind is Kind.EXACT
            else case.official_judgement(patch, result.model_name_or_path, MESSAGE_EVALUATION)
        )
        fuzzy = ArmRecord(
            arm=Arm.FUZZY,
            kind=kind,
            verdict=verdict.verdict,
            detail=f"applied by `{' '.join(FUZZY[number])}`",
            seconds=seconds,
        )
    strict = fuzzy.model_copy(update={"arm": Arm.STRICT}) if number == 0 else _refused(Arm.STRICT, why)
    return strict, fuzzy


def _refused(arm: Arm, why: str) -> ArmRecord:
    return ArmRecord(arm=arm, kind=Kind.REJECTED, verdict=Verdict.APPLY_FAILED, detail=why)


def _applied(case: Case, patch: str, commands: tuple[tuple[str, ...], ...]) -> tuple[int | None, str, Export]:
    """Apply a patch in a fresh container.

    Returns:
        the number of the command that applied it, or None; what the last command said; and what changed.
    """
    context, prepared = case.context, case.prepared
    cache = context.home / "start-trees"
    start = StartTree.of(context.client, prepared, cache=cache, labels=case.labels, say=case.say)
    files = {"message.patch": patch, "apply.sh": _script(commands)}
    with (
        tempfile.TemporaryDirectory(prefix="clawbench-message-") as scratch,
        throwaway(
            context.client, case.prepared.image_id, case.labels, files, platform=case.prepared.platform
        ) as container,
    ):
        *said, last = run_script(container, ["/clawbench/apply.sh"])
        changed = export(container, start, agent_files=(), save_agent_files_to=Path(scratch))
    number = None if last == _REFUSED else int(last)
    errors = [line for line in said if line.startswith("error: ")] or said[-1:]
    return number, "; ".join(errors)[:300], changed


def _script(commands: tuple[tuple[str, ...], ...]) -> str:
    """A script that tries commands, each on the fresh tree, and prints the number of the one that succeeds."""
    lines = [f"cd {WORKDIR}"]
    for number, command in enumerate(commands):
        lines += ["git checkout -q -- . && git clean -fdq"] if number else []
        lines.append(
            f"if {shlex.join(command)} /clawbench/message.patch 2>&1; then applied={number}; else applied=; fi"
        )
        lines.append('if [ -n "$applied" ]; then break; fi')
    body = "\n".join(lines[1:])
    return f"""{lines[0]}
for _ in once; do
{body}
done
git ls-files --others | grep -E '\\.(orig|rej)$' | tr '\\n' '\\0' | xargs -0 -r rm -f --
echo "${{applied:-{_REFUSED}}}"
"""
