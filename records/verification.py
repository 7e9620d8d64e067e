"""Verifies a run: checks every file against the manifest and the journal.

The lines of the journal are chained. They contain digests of the manifest, the plan and each case's `metadata.json`.
That contains the digest of `files.json`, which has the digest of every other file of the case. In addition, values that
are recorded twice must agree, and derived values must be correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from evaluation.outcomes import POLICY
from records.case_folder import EARLIER, MANIFEST, METADATA, REQUEST_TEXTS
from records.case_id import CaseId
from records.files import RunError, is_leftover
from records.journal import Entry, Reading
from records.predictions import NAME, own_file, rows
from records.run_folder import COLLECTION, PAGE, REPORTS, RunDirectory
from records.status import ENDED, state_of
from records.verify_case import CaseCheck, CountUse, leftovers

_TEST = "tests_bench/test_resolved.py::test_resolved"
RERUN_COMMAND = "run the same pytest command again, which rewrites it"
"""The remedy for files that are derived from others."""
_RESTORE = "restore it from an untouched copy of the run; without one, the run's results can't be trusted"
"""The remedy for files that can't be derived from others."""
_KNOWN = {
    MANIFEST,
    "plan.json",
    "state.jsonl",
    NAME,
    *REPORTS,
    *COLLECTION,
    PAGE,
    "gateway.log",
    "checks",
    "gold",
    EARLIER,
    REQUEST_TEXTS,
}
"""What a run's folder contains besides the claws' folders and hidden files."""
_SHOWN = 10
"""How many line numbers of the journal a fault lists."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a run."""

    where: str
    """A case id or the name of a file."""
    what: str
    remedy: str

    def __str__(self) -> str:
        """The fault in one line."""
        return f"{self.where}: {self.what}. {self.remedy[:1].upper()}{self.remedy[1:]}."


@dataclass
class Verification:
    """The result."""

    run_id: str
    state: str = ""
    """See `RunStatus.state`."""
    planned: int = 0
    ended: int = 0
    """Planned cases with a final outcome."""
    files: int = 0
    """Files that were compared with a digest."""
    lines: int = 0
    """Complete lines of the journal."""
    head: str = ""
    """The digest of the journal's last line. A copy of it elsewhere proves that the whole run is unchanged."""
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is worth knowing, but not a fault."""

    @property
    def is_sound(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def blame(self, where: str, what: str, remedy: str) -> None:
        """Add a fault."""
        self.faults.append(Fault(where, what, remedy))

    def blame_case(self, case: CaseId, what: str, remedy: str = "") -> None:
        """Add a fault of a case; the default remedy is to run the case again."""
        rerun = f"run the case again: pytest with the run's options, --no-resume and '{_TEST}[{case}]'"
        self.blame(str(case), what, remedy or rerun)

    def conclusion(self) -> list[str]:
        """The result in a few lines."""
        verdict = "sound" if self.is_sound else f"{len(self.faults):,} faults"
        complete = "" if self.ended == self.planned else " (not complete)"
        return [
            f"run {self.run_id} ({self.state}): {verdict}",
            f"{self.ended:,} of {self.planned:,} planned cases have a verdict{complete}; {self.files:,} files and "
            f"{self.lines:,} lines of the journal were checked",
            f"the journal ends with sha256:{self.head}",
        ]


def verify_run(run: RunDirectory, count_use: CountUse) -> Verification:
    """Check every file of a run; if it is in progress, cases in progress are left out.

    Args:
        run: the run.
        count_use: adds up a case's request log.

    Raises:
        RunError: its manifest can't be understood.
        OSError: something can't be read.
    """
    is_running = run.is_running
    journal = run.journal.read()
    found = Verification(run.run_id, lines=len(journal.entries), head=journal.head)
    found.state = state_of(journal, is_running=is_running)
    _check_journal(found, run, journal)
    planned = _planned(found, run, journal)
    found.planned = len(planned)
    _check_cases(found, run, journal, planned, count_use)
    _check_reports(found, run, journal)
    _check_predictions(found, run)
    _note_strays(found, run)
    return found


def _planned(found: Verification, run: RunDirectory, journal: Reading) -> set[CaseId]:
    try:
        planned = set(run.plan.cases())
    except RunError:
        found.blame("plan.json", "it is not a plan", _RESTORE)
        return set()
    if not planned and journal.of_run("planned"):
        found.blame("plan.json", "it is gone", _RESTORE)
    return planned


def _check_journal(found: Verification, run: RunDirectory, journal: Reading) -> None:
    if not journal.entries:
        found.blame("state.jsonl", "there is no journal", _RESTORE)
    if journal.unchained:
        what = f"something was removed, inserted or changed before {_lines_named(journal.unchained)}"
        found.blame("state.jsonl", what, _RESTORE)
    if journal.torn:
        found.notes.append(f"state.jsonl: incomplete lines are skipped ({_lines_named(journal.torn)})")
    for path, event in ((run.manifest_path, "manifest"), (run.plan.path, "planned")):
        vouched = [entry.facts.get("sha256") for entry in journal.of_run(event)]
        if not path.exists() or not vouched:
            continue  # a missing journal or plan is a fault of its own
        # a kill between writing the line and the file leaves the previous file
        allowed = vouched[-1:] if _is_followed_by_a_start(journal, event) else vouched[-2:]
        if _digest(path) not in allowed:
            found.blame(path.name, "it does not match the journal's digest", _RESTORE)


def _lines_named(numbers: Sequence[int]) -> str:
    more = ", …" if len(numbers) > _SHOWN else ""
    return f"line{'s'[: len(numbers) > 1]} {', '.join(map(str, numbers[:_SHOWN]))}{more}"


def _is_followed_by_a_start(journal: Reading, event: str) -> bool:
    """Whether a command began after the last event of a kind, so that its file must have been written."""
    last = journal.of_run(event)[-1]
    return any(entry.number > last.number for entry in journal.of_run("started"))


def _check_cases(
    found: Verification, run: RunDirectory, journal: Reading, planned: set[CaseId], count_use: CountUse
) -> None:
    events: dict[CaseId, list[Entry]] = {}
    for entry in journal.entries:
        if entry.case is not None:
            events.setdefault(entry.case, []).append(entry)
    manifest = run.manifest()
    there = {folder.id for folder in run.cases()}
    for case in sorted(planned | there | events.keys()):
        entries = events.get(case, [])
        if case not in planned:
            found.blame(str(case), "it is not in plan.json", _RESTORE)
        if found.state == "running" and entries and entries[-1].event not in ENDED:
            found.notes.append(f"{case} is in progress, and was not checked")
            continue
        vouched = [str(one.facts["metadata_sha256"]) for one in entries if "metadata_sha256" in one.facts]
        outcome = None
        if case in there:
            folder, before = run.case(case), len(found.faults)
            found.notes += [f"{case}: a kill left {name} half-written" for name in leftovers(folder)]
            check = CaseCheck(folder, manifest, count_use, partial(found.blame_case, case))
            outcome = check.check(vouched[-1] if vouched else None)
            found.files += check.files
            if outcome is None and len(found.faults) > before:
                continue  # its record can't be understood
        if outcome is not None:
            found.ended += case in planned and not POLICY[outcome].run_again
        elif entries and entries[-1].event == "finished":
            what = f"according to the journal it is finished, but its {METADATA if case in there else 'folder'} is gone"
            found.blame_case(case, what)


def _check_reports(found: Verification, run: RunDirectory, journal: Reading) -> None:
    """Check that the last command's reports are unchanged; a command that has not ended has none."""
    commands = journal.of_run("started", "ended", "interrupted")
    if found.state == "running" or not commands or commands[-1].event == "started":
        return
    for name, vouched in dict(commands[-1].facts.get("reports", {})).items():
        path = run.path / name
        if not path.exists():
            found.blame(name, "it is gone", RERUN_COMMAND)
        elif _digest(path) != vouched:
            found.blame(name, "it was changed after the last command", RERUN_COMMAND)


def _check_predictions(found: Verification, run: RunDirectory) -> None:
    """Check that the predictions match the folders; if the command has not ended, they may be older."""
    may_be_older = found.state in {"running", "killed"}
    given: dict[Path, list[str]] = {}
    try:
        for case, row in rows(run):
            for path in (run.path / NAME, own_file(case)):
                digests = given.setdefault(path, [])
                if row:
                    digests.append(sha256(row).hexdigest())
    except RunError:
        return  # a case's record can't be understood, which is a fault already
    for path in sorted({*given, *run.path.glob("predictions*.jsonl"), *run.path.glob("*/predictions*.jsonl")}):
        name = path.relative_to(run.path).as_posix()
        wanted, held = given.get(path, []), list(_line_digests(path))
        if may_be_older and set(held) <= set(wanted):
            if held != wanted:
                found.notes.append(f"{name} is older than the cases' folders; the next command rewrites it")
            continue
        for number, (should, has) in enumerate(zip_longest(wanted, held), 1):
            if should != has:
                found.blame(name, f"from row {number} on it differs from the cases' folders", RERUN_COMMAND)
                break


def _line_digests(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            for line in file:
                yield sha256(line).hexdigest()
    except FileNotFoundError:
        return


def _note_strays(found: Verification, run: RunDirectory) -> None:
    cases = {case.path for case in run.cases()}
    claws = {path.parent for path in cases}
    for path in sorted(run.path.iterdir()):
        if is_leftover(path):
            found.notes.append(f"a kill left {path.name} half-written; the next command removes it")
        elif path not in claws and path.name not in _KNOWN and not path.name.startswith("."):
            found.notes.append(f"{path.name} does not belong to the run")
    for claw in sorted(claws):
        for path in sorted(claw.iterdir()):
            known = path in cases or path.name.startswith(".") or path.match("predictions*.jsonl")
            if not known:
                found.notes.append(f"{claw.name}/{path.name} does not belong to the run")


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
