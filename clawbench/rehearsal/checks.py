"""What a run must be, whatever was thrown at it: read from its files, and held against the ledger."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

from clawbench.rehearsal.faults import LostError
from clawbench.rehearsal.stage import Stage
from clawbench.verification import verify_run
from evaluation.outcomes import POLICY, Outcome
from records.case import CaseFolder, parts_of
from records.journal import PlannedCase
from records.run import RunDirectory

_OF_EXPORT = ("export.json", "git.patch", "requests.jsonl")
_OF_VERDICT = ("metadata.json", *_OF_EXPORT)


def ended(run: RunDirectory) -> dict[Path, str]:
    """Every file that no later command may touch, with its digest: of the verdicts and exports that there are."""
    return {
        path: sha256(path.read_bytes()).hexdigest()
        for case in run.cases()
        for path in (case.path / name for name in _files(case))
        if path.exists()
    }


def _files(case: CaseFolder) -> tuple[str, ...]:
    export, metadata = case.export(), case.metadata()
    if export is None or not export["is_final"]:
        return ()
    has_verdict = metadata is not None and not POLICY[Outcome(metadata["outcome"])].run_again
    return _OF_VERDICT if has_verdict else _OF_EXPORT


def untouched(before: Mapping[Path, str]) -> None:
    """See that what had ended was left alone (raises LostError)."""
    changed = [
        str(path)
        for path, digest in before.items()
        if not path.exists() or sha256(path.read_bytes()).hexdigest() != digest
    ]
    if changed:
        raise LostError(f"{len(changed)} files of what had ended were touched: {', '.join(changed[:20])}")


def is_complete(stage: Stage) -> bool:
    """Whether every case has a verdict that counts."""
    return sum(len(_files(case)) == len(_OF_VERDICT) for case in stage.run.cases()) >= len(stage.cases)


def whole(stage: Stage) -> None:
    """See that a run that says it is complete has everything, once (raises LostError)."""
    faults = [
        fault
        for check in (_verdicts, _predictions, _journal, _reports, _work, _leftovers, _verified)
        for fault in check(stage)
    ]
    if faults:
        more = f"\n  and {len(faults) - 30} more" if len(faults) > 30 else ""
        raise LostError("\n  ".join([f"{len(faults)} faults in {stage.run.path}:", *faults[:30]]) + more)


def _name(case: CaseFolder) -> str:
    return f"{case.claw}-{case.path.name}"


def _verdicts(stage: Stage) -> Iterator[str]:
    found = {_name(case): case for case in stage.run.cases()}
    for name in sorted(found.keys() ^ stage.cases.keys()):
        yield f"{name}: {'not asked for' if name in found else 'no folder'}"
    for name, expected in stage.cases.items():
        case = found.get(name)
        metadata = case.metadata() if case else None
        if case is None or metadata is None or case.export() is None:
            yield f"{name}: no whole verdict and export"
        elif metadata["outcome"] != expected.outcome:
            yield f"{name}: {metadata['outcome']}, not {expected.outcome}"
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
    """It is whole but where something was thrown, and no case was begun that had ended, unless it was torn."""
    reading = stage.run.journal.read()
    over: set[PlannedCase] = set()
    may_begin = _torn_cases(stage)
    for entry in reading.entries:
        if entry.event == "finished" and entry.case:
            over.add(entry.case)
        elif entry.case in over - may_begin:
            yield f"state.jsonl: {entry.case} had ended, and was {entry.event} again in line {entry.number}"
    for number in reading.unchained:
        yield f"state.jsonl: line {number} does not go on from the one before"
    thrown = sum(row["event"] == "thrown" for row in stage.ledger.rows())
    if len(reading.torn) > thrown:
        yield f"state.jsonl: {len(reading.torn)} torn lines, and {thrown} occasions for one"


def _torn_cases(stage: Stage) -> set[PlannedCase]:
    """The cases of which a file lost its end."""
    files = [name.split("/") for row in stage.ledger.rows() for name in row.get("torn", ())]
    return {PlannedCase(parts[0], *parts_of(parts[1])) for parts in files if len(parts) == 3}


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
        for name in row.get("torn", ()):
            claw, _, rest = name.partition("/")
            judged.discard(f"{claw}-{rest.partition('/')[0]}")


def _leftovers(stage: Stage) -> Iterator[str]:
    """Nothing that was of use only for a moment is there; what a claw left in its session is its own."""
    run = stage.run.path
    for path in (*run.glob(".*"), *run.glob("*/.*"), *run.glob("*/*/.*")):
        if not path.name.endswith(".lock"):
            yield f"left behind: {path.relative_to(stage.run.path)}"


def _verified(stage: Stage) -> Iterator[str]:
    """`clawbench verify` has nothing to say against it."""
    yield from (f"verify: {fault}" for fault in verify_run(stage.run).faults)
