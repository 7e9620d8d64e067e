"""The run's folder: one manifest, one folder for each case, and what is derived from them.

The cases' folders are authoritative. `predictions.jsonl` is derived from them and can be rewritten at any time;
`state.jsonl` is the journal of what happened when.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from records.case_folder import EARLIER, MANIFEST, METADATA, REQUESTS, CaseFolder
from records.case_id import CaseId
from records.files import RunError, as_json, is_leftover, is_locked, write_atomically
from records.journal import Journal, now
from records.plan import Plan

if TYPE_CHECKING:
    from filelock import FileLock

    from records.models import CaseRecord, GoldMark, RowsSource, RunManifest

__all__ = ["REPORTS", "RunDirectory", "RunError"]

REPORTS = ("junit.xml", "report.json", "summary.json")
"""The reports that each command writes at its end."""
COLLECTION = ("collection.json", "collection.md")
"""The reports of `--collect paired`."""
PAGE = "report.html"
"""The page, which `clawbench report` can write again at any time."""
_WRITTEN_BY_EVERY_COMMAND = {
    MANIFEST,
    "plan.json",
    "state.jsonl",
    ".lock",
    ".progress",
    ".rows",
    "checks",
    "gateway.log",
    *REPORTS,
    *COLLECTION,
    PAGE,
}
_LOOK_LIMIT = 60.0
"""Seconds for which readers that only check whether a run is in progress may delay its start."""
_NOT_ALWAYS_RECORDED = {"runtime_sha256"}
"""Facts that older versions of the suite did not record."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class RunDirectory:
    """`<artifacts>/<run_id>/`."""

    def __init__(self, path: Path) -> None:
        """Create nothing yet; `open` creates or checks the folder."""
        self.path = path
        self.run_id = path.name

    @classmethod
    def named(cls, artifacts: Path, run_id: str) -> RunDirectory:
        """The folder of a run id.

        Raises:
            RunError: the id can't name a folder and a Docker label.
        """
        if not _RUN_ID.fullmatch(run_id):
            raise RunError(
                f"--run-id {run_id!r}: use at most 120 letters, digits, '.', '_' and '-', and begin with a letter "
                "or digit"
            )
        return cls(artifacts / run_id)

    @classmethod
    def found(cls, run: str, artifacts: Path) -> RunDirectory:
        """An existing run, given by its id or its folder.

        Raises:
            RunError: there is no such run.
        """
        folder = Path(run)
        if not (folder / MANIFEST).is_file() and _RUN_ID.fullmatch(run):
            folder = artifacts / run
        if not (folder / MANIFEST).is_file():
            raise RunError(
                f"there is no run {run}: neither a folder of that name nor one in {artifacts} has a run's "
                f"{MANIFEST}; `clawbench runs` lists all runs"
            )
        return cls(folder.resolve())

    @property
    def manifest_path(self) -> Path:
        """The path of the run's manifest."""
        return self.path / MANIFEST

    @property
    def plan(self) -> Plan:
        """All cases that any command of this run selected."""
        return Plan(self.path / "plan.json", self.journal)

    @property
    def journal(self) -> Journal:
        """What happened when."""
        return Journal(self.path / "state.jsonl")

    def lock(self) -> FileLock:
        """Lock this run for this process, until the lock is released or the process ends.

        Raises:
            RunError: another process has locked the run, or the folder can't be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self._acquired()
        except OSError as error:
            raise RunError(
                f"{self.path} can't be written ({error.strerror}); choose another folder with --artifacts"
            ) from error
        if lock is None:
            raise RunError(
                f"run {self.run_id} is in progress in another process; wait for it or choose another --run-id"
            )
        return lock

    def _acquired(self) -> FileLock | None:
        """The lock; None if another process has it (raises OSError)."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 - it imports asyncio, which is slow

        deadline = time.monotonic() + _LOOK_LIMIT
        lock = FileLock(self.path / ".lock", timeout=0)
        while True:
            try:
                lock.acquire()
            except Timeout:
                # `is_locked` takes a shared lock for a moment, or for longer on a busy machine
                if self.is_running or time.monotonic() > deadline:
                    return None
                time.sleep(0.01)
            else:
                return lock

    @property
    def is_running(self) -> bool:
        """Whether a process has locked the run right now (raises OSError)."""
        return is_locked(self.path / ".lock")

    def open(self, manifest: RunManifest) -> None:
        """Write the manifest of a new run, or check it against the existing one.

        `settings` must be equal. Claws that are new to the run are added, known ones must be equal. `limits` are
        replaced; the journal has every change of them.

        Args:
            manifest: of this command; run id and time are filled in.

        Raises:
            RunError: something differs; the message lists all differences.
        """
        if not self.manifest_path.exists():
            self._write_manifest(manifest.model_copy(update={"run_id": self.run_id, "created": now()}))
            return
        held = self.manifest()
        before, given = held.facts(), manifest.facts()
        self._refuse_differences(
            [
                *_differences(before["settings"], given["settings"], ""),
                *_changed_entries(before["claws"], given["claws"], "claws."),
            ]
        )
        if before["limits"] != given["limits"]:
            self.journal.write("limits", before=before["limits"], now=given["limits"])
        fresh = {"claws": {**held.claws, **manifest.claws}, "limits": manifest.limits}
        self._replace_manifest(held, fresh)

    def add_rows(self, rows: Mapping[str, RowsSource]) -> None:
        """Add the sources of rows to the manifest, by set; known ones must be equal.

        Raises:
            RunError: one differs; the message lists all differences.
        """
        held = self.manifest()
        given = {name: one.model_dump(mode="json") for name, one in rows.items()}
        self._refuse_differences(_changed_entries(held.facts()["rows"], given, "rows."))
        self._replace_manifest(held, {"rows": {**held.rows, **rows}})

    def note_gold(self, marks: Mapping[str, GoldMark]) -> None:
        """Replace the manifest's list of broken environments (raises RunError, OSError)."""
        self._replace_manifest(self.manifest(), {"gold": dict(marks)})

    def _replace_manifest(self, held: RunManifest, parts: Mapping[str, Any]) -> None:
        fresh = held.model_copy(update=dict(parts))
        if fresh != held:
            self._write_manifest(fresh)

    def _write_manifest(self, manifest: RunManifest) -> None:
        text = as_json(manifest.facts())
        # the journal comes first, so that there is never a manifest that it does not vouch for
        self.journal.write("manifest", sha256=sha256(text).hexdigest())
        write_atomically(self.manifest_path, text)

    def _refuse_differences(self, lines: Iterable[str]) -> None:
        lines = list(lines)
        if lines:
            head = f"run {self.run_id} has other settings; choose another --run-id, or give the run's settings:"
            raise RunError("\n  ".join([head, *lines]))

    def manifest(self) -> RunManifest:
        """The run's manifest: everything that its results depend on.

        Raises:
            RunError: there is no manifest, or another version of the suite wrote it.
            OSError: it can't be read.
        """
        from records.models import RunManifest, read_record  # noqa: PLC0415 - pydantic is slow to import

        found = read_record(self.manifest_path, RunManifest)
        if found is None:
            raise RunError(f"{self.manifest_path} is missing or incomplete; choose another --run-id")
        return found

    def case(self, case: CaseId) -> CaseFolder:
        """The folder of a case."""
        return CaseFolder(self.path, case)

    def cases(self) -> list[CaseFolder]:
        """Every case that has a folder, sorted by claw and folder."""
        marks = ("case.json", METADATA)
        return [
            CaseFolder(self.path, CaseId.from_folder(claw, name))
            for claw in _folders(self.path)
            for name in _folders(self.path / claw)
            # plain strings: there may be thousands of cases, and this is called often
            if any(os.path.exists(f"{self.path}/{claw}/{name}/{mark}") for mark in marks)  # noqa: PTH110
        ]

    def request_logs(self) -> list[Path]:
        """The request logs of all attempts at all cases, discarded attempts included."""
        return sorted([*self.path.glob(f"*/*/{REQUESTS}"), *self.path.glob(f"{EARLIER}/*/*/*.jsonl")])

    def note(self, case: CaseFolder, event: str, **more: Any) -> None:
        """Write an event of a case to the journal (raises OSError)."""
        facts = {"claw": case.id.claw, "instance_id": case.id.instance_id, "sample": case.id.sample}
        self.journal.write(event, **{**facts, "attempt": case.attempt, **more})

    def finish(self, case: CaseFolder, record: CaseRecord, **more: Any) -> None:
        """Write a case's outcome: its digest to the journal, then the outcome to its folder.

        Args:
            case: the case.
            record: its record.
            more: further facts for the journal.

        Raises:
            OSError: it can't be written.
        """
        is_over = not record.policy.run_again
        told = {"outcome": record.outcome, "detail": record.detail, **more}
        event = "judged" if is_over else "errored"
        case.finish(record, lambda digest: self.note(case, event, **told, metadata_sha256=digest))
        if is_over:
            self.note(case, "finished", outcome=record.outcome, **more)

    def remove_if_nothing_happened(self) -> bool:
        """Remove the run if its folder holds only what every command writes.

        Only the process that created the folder may call this, so that nobody else's files are removed.
        """
        if not {path.name for path in self.path.iterdir()} <= _WRITTEN_BY_EVERY_COMMAND:
            return False
        shutil.rmtree(self.path, ignore_errors=True)
        return True

    def remove_leftovers(self) -> None:
        """Remove half-written files outside the cases' folders; only the process that has locked the run may do this."""
        for path in [*self.path.glob(".*"), *self.path.glob("*/.*")]:
            if is_leftover(path):
                path.unlink(missing_ok=True)


def _folders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []  # it is being created or removed


def _changed_entries(held: Mapping[str, Any], given: Mapping[str, Any], prefix: str) -> list[str]:
    """The differences between the entries that both have."""
    both = held.keys() & given.keys()
    return _differences({name: held[name] for name in both}, {name: given[name] for name in both}, prefix)


def _differences(held: Mapping[str, Any], given: Mapping[str, Any], prefix: str) -> list[str]:
    lines = []
    for name in sorted({*held, *given}):
        before, after = held.get(name), given.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            lines += _differences(before, after, f"{prefix}{name}.")
        elif before != after:
            told = "did not record it" if name in _NOT_ALWAYS_RECORDED and before is None else f"has {before!r}"
            lines.append(f"{prefix}{name}: the run {told}, this command {after!r}")
    return lines
