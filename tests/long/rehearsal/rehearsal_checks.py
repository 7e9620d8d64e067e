"""What a run must be, whatever was thrown at it: read from its files, and held against the ledger."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from clawbench.run.usage import use_in
from evaluation.outcomes import POLICY, Ending, Outcome
from records.case_folder import EARLIER, CaseFolder
from records.case_id import CaseId
from records.files import files_below, is_leftover
from records.run_folder import RunDirectory
from records.verification import verify_run
from tests.long.rehearsal.stage import Stage, in_engine
from tests.long.rehearsal.thrown_faults import LostError

_OF_VERDICT = ("metadata.json", "files.json", "evaluation/")
"""What a case with an export gets with its verdict, and may lose again until it has one."""
_OF_EXPORT = {"export.json", "git.patch"}
"""Without which an export is none."""
_GOOD_ENDS = {0, 1, 2, 4}
"""Exit codes: all passed, some did not, stopped, refused before the first case."""


def ended(run: RunDirectory) -> dict[Path, str]:
    """Every file that no later command may touch, with its digest: of the verdicts and exports that there are.

    So are the requests of attempts that were thrown away: what they cost stays spent.
    """
    kept = [path for case in run.cases() for path in _kept(case)]
    found = {}
    for path in (*kept, *run.path.glob(f"{EARLIER}/*/*/*.jsonl")):
        # a worker that a killed run left behind may be at work on what does not count yet
        with suppress(FileNotFoundError):
            found[path] = _digest(path)
    return found


def _digest(path: Path) -> str:
    return str(path.readlink()) if path.is_symlink() else sha256(path.read_bytes()).hexdigest()


def _kept(case: CaseFolder) -> Iterator[Path]:
    export = case.export()
    if export is None or not export.is_final:
        return
    passing = () if _has_verdict(case) else _OF_VERDICT
    for path in files_below(case.path):
        name = path.relative_to(case.path).as_posix()
        if not is_leftover(path) and not name.startswith(passing):
            yield path


def _has_verdict(case: CaseFolder) -> bool:
    record = case.metadata()
    return record is not None and case.export() is not None and not record.policy.run_again


def untouched(before: Mapping[Path, str]) -> None:
    """See that what had ended was left alone (raises LostError)."""
    changed = [
        str(path) for path, digest in before.items() if not os.path.lexists(path) or _digest(path) != digest
    ]
    if changed:
        raise LostError(f"{len(changed)} files of what had ended were touched: {', '.join(changed[:20])}")


def said(stage: Stage, *, since: int, code: int) -> None:
    """See that a command came to an end that it knows, or was killed (raises LostError).

    Args:
        stage: of the command.
        since: where in the output it began.
        code: its exit code.
    """
    text = stage.output.read_bytes()[since:].decode(errors="replace")
    if "INTERNALERROR" in text or (code >= 0 and code not in _GOOD_ENDS):
        raise LostError(f"a command broke, with exit code {code}:\n{text[-6000:]}")


def is_complete(stage: Stage) -> bool:
    """Whether every case has a verdict that counts."""
    return sum(_has_verdict(case) for case in stage.run.cases()) >= len(stage.cases)


def whole(stage: Stage) -> None:
    """See that a run that says it is complete has everything, once (raises LostError)."""
    faults = [
        fault
        for check in (_verdicts, _predictions, _journal, _reports, _work, _leftovers, _verified, _in_engine)
        for fault in check(stage)
    ]
    if faults:
        more = f"\n  and {len(faults) - 30} more" if len(faults) > 30 else ""
        raise LostError("\n  ".join([f"{len(faults)} faults in {stage.run.path}:", *faults[:30]]) + more)


def _name(case: CaseFolder) -> str:
    return str(case.id)


def _verdicts(stage: Stage) -> Iterator[str]:
    found = {_name(case): case for case in stage.run.cases()}
    for name in sorted(found.keys() ^ stage.cases.keys()):
        yield f"{name}: {'not asked for' if name in found else 'no folder'}"
    for name, expected in stage.cases.items():
        case = found.get(name)
        metadata = case.metadata() if case else None
        if case is None or metadata is None or case.export() is None:
            yield f"{name}: no whole verdict and export"
        elif metadata.outcome != expected.outcome:
            yield f"{name}: {metadata.outcome}, not {expected.outcome}"
        elif (case.patch() != expected.patch) if expected.patch is not None else not case.patch():
            yield f"{name}: the patch is another"


def _predictions(stage: Stage) -> Iterator[str]:
    """The rows of the claw's own files are those of all; each row is there once, and has the case's patch."""
    run = stage.run.path
    of_claws: Counter[str] = Counter()
    for path in sorted(run.glob("*/predictions*.jsonl")):
        sample = path.stem.removeprefix("predictions")
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        of_claws.update(json.dumps(row) for row in rows)
        for row in rows:
            name = f"{path.parent.name}-{row['instance_id']}{sample}"
            case = path.parent / f"{row['instance_id']}{sample}"
            if name not in stage.cases or row["model_patch"] != (case / "git.patch").read_bytes().decode():
                yield f"{path.relative_to(run)}: the row of {row['instance_id']} is not the case's"
        if len({row["instance_id"] for row in rows}) != len(rows):
            yield f"{path.relative_to(run)}: an instance is in it twice"
    if of_claws.total() != len(stage.cases):
        yield f"{of_claws.total()} predictions of {len(stage.cases)} cases"
    of_all = Counter(
        line for path in run.glob("predictions*.jsonl") for line in path.read_text().split("\n") if line
    )
    if of_all != of_claws:
        yield "predictions.jsonl has not the rows of the claws' own files"


def _journal(stage: Stage) -> Iterator[str]:
    """It is whole but where something was thrown; no case was begun that had ended, unless it was torn since."""
    reading = stage.run.journal.read()
    over: set[CaseId] = set()
    exported: set[CaseId] = set()
    tears = [(row["journal"], _torn(row)) for row in stage.ledger.rows() if "torn" in row]
    for number, entry in enumerate(reading.entries):
        while tears and tears[0][0] <= number:
            for case, name in tears.pop(0)[1]:
                over.discard(case)
                exported -= {case} if name in _OF_EXPORT else set()
        if entry.case is None:
            continue
        if entry.case in over:
            yield f"state.jsonl: {entry.case} had ended, and was {entry.event} again in line {entry.number}"
        if entry.event == "begun" and entry.case in exported and entry.facts.get("kept") != "export":
            yield f"state.jsonl: {entry.case} had its export, and was begun anew in line {entry.number}"
        if entry.event == "finished":
            over.add(entry.case)
        if entry.event == "exported" and Ending(entry.facts["ending"]).is_final:
            exported.add(entry.case)
    for line in reading.unchained:
        yield f"state.jsonl: line {line} does not go on from the one before"
    occasions = sum("killed" in row["what"] or "state.jsonl" in row.get("torn", ()) for row in _thrown(stage))
    if len(reading.torn) > occasions:
        yield f"state.jsonl: {len(reading.torn)} torn lines, and {occasions} occasions for one"


def _thrown(stage: Stage) -> Iterator[dict[str, Any]]:
    return (row for row in stage.ledger.rows() if row["event"] == "thrown")


def _torn(row: Mapping[str, Any]) -> list[tuple[CaseId, str]]:
    """Which files of which cases lost their ends, as the ledger has it."""
    files = [name.split("/") for name in row.get("torn", ())]
    return [(CaseId.from_folder(parts[0], parts[1]), parts[2]) for parts in files if len(parts) == 3]


def _reports(stage: Stage) -> Iterator[str]:
    """The last command's reports have every case once, as what it is, and no error."""
    suite = ElementTree.parse(stage.run.path / "junit.xml").getroot()  # noqa: S314 - pytest wrote it
    junit = Counter(str(case.get("name")).partition("[")[2].rstrip("]") for case in suite.iter("testcase"))
    tests = json.loads((stage.run.path / "report.json").read_text())["tests"]
    report = Counter(test["nodeid"].partition("[")[2].rstrip("]") for test in tests)
    for name, found in (("junit.xml", junit), ("report.json", report)):
        if found != Counter(list(stage.cases)):
            yield f"{name}: has {found.total()} cases, {len(found)} different ones, of {len(stage.cases)}"
    for test in tests:
        name = test["nodeid"].partition("[")[2].rstrip("]")
        passes = name in stage.cases and POLICY[Outcome(stage.cases[name].outcome)].passes
        if test["outcome"] != ("passed" if passes else "failed"):
            yield f"report.json: {name} {test['outcome']}"


def _work(stage: Stage) -> Iterator[str]:
    """No claw worked on a case that a judge had been given, unless its export was torn since."""
    judged: set[str] = set()
    for row in stage.ledger.rows():
        if row["event"] == "judge begins":
            judged.add(row["case"])
        elif row["event"] == "claw begins" and row["case"] in judged:
            yield f"{row['case']}: a claw worked on it again, after its patch was with the judge"
        judged -= {str(case) for case, name in _torn(row) if name in _OF_EXPORT}
    if not judged:
        yield "no judge was given anything: nobody looked on"


def _leftovers(stage: Stage) -> Iterator[str]:
    """Nothing that was of use only for a moment is there; what a claw left in its session is its own."""
    run = stage.run.path
    for path in (*run.glob(".*"), *run.glob("*/.*"), *run.glob("*/*/.*")):
        if not path.name.endswith(".lock"):
            yield f"left behind: {path.relative_to(stage.run.path)}"


def _verified(stage: Stage) -> Iterator[str]:
    """`clawbench verify` has nothing to say against it."""
    yield from (f"verify: {fault}" for fault in verify_run(stage.run, use_in).faults)


def _in_engine(stage: Stage) -> Iterator[str]:
    """Nothing is in a real engine that was not there before."""
    if stage.engine_before is not None:
        yield from (
            f"left in the engine: {what}" for what in sorted(in_engine(stage.run_id) - stage.engine_before)
        )
