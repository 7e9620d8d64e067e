"""A whole run: manifest, plan and journal, every case's folder, and what is derived from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from clawbench.pace import ENDED
from clawbench.state import REPORTS
from clawbench.status import case_id, state_of
from clawbench.verification.case import CaseCheck
from clawbench.verification.findings import ANEW, COPY, Verification, again
from evaluation.outcomes import POLICY
from records.case import EARLIER, METADATA
from records.files import is_leftover
from records.journal import Entry, PlannedCase, Reading
from records.plan import PlanError
from records.predictions import NAME, own_file, rows
from records.run import RunDirectory

_KNOWN = {"manifest.json", "plan.json", "state.jsonl", NAME, *REPORTS, "gateway.log", "checks", "gold", EARLIER}
"""What a run's folder holds beside the claws' folders and what is hidden."""
_SHOWN = 10
"""Lines of the journal that are named."""


def verify_run(run: RunDirectory) -> Verification:
    """Check every file of a run; one that is at work is checked as far as it is.

    Raises:
        RunError: its manifest is none.
        OSError: something can't be read.
    """
    is_running = run.is_running
    journal = run.journal.read()
    found = Verification(run.run_id, lines=len(journal.entries), head=journal.head)
    found.state = state_of(journal, is_running=is_running)
    _check_journal(found, run, journal)
    planned = _planned(found, run, journal)
    found.planned = len(planned)
    _check_cases(found, run, journal, planned)
    _check_reports(found, run, journal)
    _check_predictions(found, run)
    _tell_strays(found, run)
    return found


def _planned(found: Verification, run: RunDirectory, journal: Reading) -> set[PlannedCase]:
    try:
        planned = set(run.plan.cases())
    except PlanError:
        found.blame("plan.json", "it is not a plan", COPY)
        return set()
    if not planned and journal.of_run("planned"):
        found.blame("plan.json", "it is gone", COPY)
    return planned


def _check_journal(found: Verification, run: RunDirectory, journal: Reading) -> None:
    if not journal.entries:
        found.blame("state.jsonl", "there is no journal", COPY)
    unlinked = [entry.number for entry in journal.entries if "prev" not in entry.facts]
    if unlinked:
        what = f"{len(unlinked):,} lines have no digest of the one before ({_first(unlinked)})"
        found.blame("state.jsonl", f"{what}: a version that wrote none made them, or it was taken out", COPY)
    for number in sorted({*journal.unchained} - {*unlinked}):
        found.blame("state.jsonl", f"something before line {number} was removed, put in or changed", COPY)
    if journal.torn:
        numbers = _first(journal.torn)
        found.notes.append(f"state.jsonl: {len(journal.torn):,} torn lines are left out ({numbers})")
    for path, event in ((run.manifest_path, "manifest"), (run.plan.path, "planned")):
        vouched = [entry.facts.get("sha256") for entry in journal.of_run(event)]
        if not path.exists() or not vouched:
            continue  # without a journal there is a fault already, and a plan that is not there has one
        # a kill after the line and before the file leaves the former one
        allowed = vouched[-1:] if _went_on(journal, event) else vouched[-2:]
        if _digest(path) not in allowed:
            found.blame(path.name, "it is not what the journal vouches for", COPY)


def _first(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_SHOWN])) + (", …" if len(numbers) > _SHOWN else "")


def _went_on(journal: Reading, event: str) -> bool:
    """Whether a command got beyond what the last line of a kind was written for."""
    last = journal.of_run(event)[-1]
    return any(entry.number > last.number for entry in journal.of_run("started"))


def _check_cases(found: Verification, run: RunDirectory, journal: Reading, planned: set[PlannedCase]) -> None:
    of_case: dict[PlannedCase, list[Entry]] = {}
    for entry in journal.entries:
        if entry.case is not None:
            of_case.setdefault(entry.case, []).append(entry)
    manifest = run.manifest()
    there = {PlannedCase(folder.claw, folder.instance_id, folder.sample) for folder in run.cases()}
    for case in sorted(planned | there | of_case.keys()):
        name, entries = case_id(case), of_case.get(case, [])
        if case not in planned:
            found.blame(name, "nobody asked for it: it is not in plan.json", COPY)
        if found.state == "running" and entries and entries[-1].event not in ENDED:
            found.notes.append(f"{name} is at work, and was not checked")
            continue
        vouched = [entry.facts["metadata_sha256"] for entry in entries if "metadata_sha256" in entry.facts]
        outcome = None
        if case in there:
            check = CaseCheck(found, run.case(*case), name, manifest)
            outcome = check.check(str(vouched[-1]) if vouched else None)
        if outcome is not None:
            found.ended += case in planned and not POLICY[outcome].run_again
        elif entries and entries[-1].event == "finished":
            what = f"the journal has it as finished, and its {METADATA if case in there else 'folder'} is gone"
            found.blame(name, what, again(name))


def _check_reports(found: Verification, run: RunDirectory, journal: Reading) -> None:
    """Whether the last command's reports are what it left; one that did not end has left none yet."""
    commands = journal.of_run("started", "ended", "interrupted")
    if found.state == "running" or not commands or commands[-1].event == "started":
        return
    for name, vouched in dict(commands[-1].facts.get("reports", {})).items():
        path = run.path / name
        if not path.exists():
            found.blame(name, "it is gone", ANEW)
        elif _digest(path) != vouched:
            found.blame(name, "it is not what the last command left", ANEW)


def _check_predictions(found: Verification, run: RunDirectory) -> None:
    """Whether predictions are what the folders give; they may be older while nobody has had the time."""
    may_be_older = found.state in {"running", "killed"}
    given: dict[Path, list[str]] = {}
    for case, row in rows(run):
        for path in (run.path / NAME, own_file(case)):
            digests = given.setdefault(path, [])
            if row:
                digests.append(sha256(row).hexdigest())
    for path in sorted({*given, *run.path.glob("predictions*.jsonl"), *run.path.glob("*/predictions*.jsonl")}):
        name = path.relative_to(run.path).as_posix()
        wanted, held = given.get(path, []), list(_lines(path))
        if may_be_older and set(held) <= set(wanted):
            if held != wanted:
                found.notes.append(f"{name} is older than the cases' folders; the next command makes it anew")
            continue
        for number, (should, has) in enumerate(zip_longest(wanted, held), 1):
            if should != has:
                found.blame(name, f"from row {number} on it is not what the cases' folders give", ANEW)
                break


def _lines(path: Path) -> Iterator[str]:
    """The digest of each line."""
    try:
        with path.open("rb") as file:
            for line in file:
                yield sha256(line).hexdigest()
    except FileNotFoundError:
        return


def _tell_strays(found: Verification, run: RunDirectory) -> None:
    cases = {case.path for case in run.cases()}
    claws = {path.parent for path in cases}
    for path in sorted(run.path.iterdir()):
        if is_leftover(path):
            found.notes.append(f"{path.name} was left half-written by a kill; the next command removes it")
        elif path not in claws and path.name not in _KNOWN and not path.name.startswith("."):
            found.notes.append(f"{path.name} is none of the run's files")
    for claw in sorted(claws):
        for path in sorted(claw.iterdir()):
            known = path in cases or path.name.startswith(".") or path.match("predictions*.jsonl")
            if not known:
                found.notes.append(f"{claw.name}/{path.name} is none of the run's files")


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
