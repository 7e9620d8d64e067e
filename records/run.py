"""The run directory: one manifest, one folder a case, and what is derived from them.

A case's folder is the truth; `predictions.jsonl` is derived from the folders and can be made again at any time,
`state.jsonl` is the journal of what happened when.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from records.case import EARLIER, METADATA, REQUESTS, CaseFolder, folder_name, parts_of
from records.files import as_json, is_leftover, is_locked, write_atomically
from records.journal import Journal, now
from records.plan import Plan

_OF_EVERY_COMMAND = {
    "manifest.json",
    "plan.json",
    "state.jsonl",
    ".lock",
    ".progress",
    ".rows",
    "checks",
    "gateway.log",
    "junit.xml",
    "report.json",
    "summary.json",
}
"""What a run's folder holds before anything has been run in it."""
_LOOKED_AT = 60.0
"""Seconds for which those that only look whether a run is at work may keep it from beginning: each is at it for a
moment."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class RunError(ValueError):
    """The run directory can't be used as asked; the message says why and what to do."""


class RunDirectory:
    """`<artifacts>/<run_id>/`."""

    def __init__(self, path: Path) -> None:
        """Name a run directory; `open` makes or checks it."""
        self.path = path
        self.run_id = path.name

    @classmethod
    def named(cls, artifacts: Path, run_id: str) -> RunDirectory:
        """The directory of a run id.

        Raises:
            RunError: the id is no name for a folder and a Docker label.
        """
        if not _RUN_ID.fullmatch(run_id):
            raise RunError(
                f"--run-id {run_id!r}: use letters, digits, '.', '_' and '-', beginning with a letter or digit, "
                "120 at the most"
            )
        return cls(artifacts / run_id)

    @classmethod
    def found(cls, run: str, artifacts: Path) -> RunDirectory:
        """A run that is there, by its id or its folder.

        Raises:
            RunError: there is none.
        """
        folder = Path(run)
        if not (folder / "manifest.json").is_file() and _RUN_ID.fullmatch(run):
            folder = artifacts / run
        if not (folder / "manifest.json").is_file():
            raise RunError(
                f"there is no run {run}: neither a folder of that name nor one in {artifacts} holds a run's "
                "manifest.json; `clawbench runs` lists what there is"
            )
        return cls(folder.resolve())

    @property
    def manifest_path(self) -> Path:
        """What every number of the run is attributed to."""
        return self.path / "manifest.json"

    @property
    def plan(self) -> Plan:
        """Every case that was asked for under this run id."""
        return Plan(self.path / "plan.json", self.journal)

    @property
    def journal(self) -> Journal:
        """What happened when."""
        return Journal(self.path / "state.jsonl")

    def lock(self) -> FileLock:
        """Hold this run id for this process, until the lock is released or the process ends.

        Raises:
            RunError: another process runs under the same id at this moment, or the folder can't be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self._acquired()
        except OSError as error:
            raise RunError(
                f"{self.path} can't be written ({error.strerror}); give another folder by --artifacts"
            ) from error
        if lock is None:
            raise RunError(
                f"run {self.run_id} is in progress in another process; wait for it or take another --run-id"
            )
        return lock

    def _acquired(self) -> FileLock | None:
        """The lock; None where another process runs under the id (raises OSError)."""
        deadline = time.monotonic() + _LOOKED_AT
        lock = FileLock(self.path / ".lock", timeout=0)
        while True:
            try:
                lock.acquire()
            except Timeout:
                # who only looks shares it with others that do, for a moment: a long one where the machine is busy
                if self.is_running or time.monotonic() > deadline:
                    return None
                time.sleep(0.01)
            else:
                return lock

    @property
    def is_running(self) -> bool:
        """Whether a process holds the run at this moment (raises OSError where that can't be told)."""
        return is_locked(self.path / ".lock")

    def open(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, or check that the run's own says the same.

        `settings` must be equal; claws that are new to the run are added, those that it has must be equal.
        `limits` may be others each time: the manifest has those of the latest command, the journal every change.

        Args:
            manifest: `settings`, `claws` and `limits` (one mapping each), and whatever else is worth knowing.

        Raises:
            RunError: something differs; every difference is in the message.
        """
        if not self.manifest_path.exists():
            self._write_manifest({"run_id": self.run_id, "created": now(), **manifest})
            return
        held = self.manifest()
        claws, settings = held["claws"], held["settings"]
        shared = {name: value for name, value in manifest["claws"].items() if name in claws}
        different = [
            *_differences(settings, manifest["settings"], ""),
            *_differences({name: claws[name] for name in shared}, shared, "claws."),
        ]
        if different:
            raise RunError(_refusal(self.run_id, different))
        limits = held.get("limits")
        fresh = {**held, "claws": {**claws, **manifest["claws"]}, "limits": manifest["limits"]}
        if limits != manifest["limits"]:
            self.journal.write("limits", before=limits, now=manifest["limits"])
        if fresh != held:
            self._write_manifest(fresh)

    def add(self, part: str, entries: Mapping[str, Any]) -> None:
        """Add entries to a part of the manifest; those that it has must be equal.

        Args:
            part: the part's name.
            entries: by name.

        Raises:
            RunError: one differs; every difference is in the message.
        """
        held = json.loads(self.manifest_path.read_text())
        known: dict[str, Any] = held.get(part, {})
        shared = {name: value for name, value in entries.items() if name in known}
        different = _differences({name: known[name] for name in shared}, shared, f"{part}.")
        if different:
            raise RunError(_refusal(self.run_id, different))
        if set(entries) - set(known):
            self._write_manifest({**held, part: {**known, **entries}})

    def put(self, part: str, entries: Mapping[str, Any]) -> None:
        """Replace a part of the manifest that may be another with each command.

        Args:
            part: the part's name.
            entries: by name; without any, a part that was never there stays out.
        """
        held = json.loads(self.manifest_path.read_text())
        if held.get(part, {}) != entries:
            self._write_manifest({**held, part: dict(entries)})

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        text = as_json(manifest)
        # first the journal: no manifest is there that it does not know of
        self.journal.write("manifest", sha256=sha256(text).hexdigest())
        write_atomically(self.manifest_path, text)

    def manifest(self) -> dict[str, Any]:
        """All that the manifest says.

        Raises:
            RunError: it is no manifest.
            OSError: it can't be read.
        """
        try:
            found = json.loads(self.manifest_path.read_bytes())
            if not all(isinstance(found[name], dict) for name in ("settings", "claws")):
                raise TypeError("claws and settings must be mappings")
            if not all(isinstance(found.get(name) or {}, dict) for name in ("limits", "rows", "gold")):
                raise TypeError("limits, rows and gold must be mappings where they are there")
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{self.manifest_path} is not a manifest ({error}); take another --run-id") from error
        return dict(found)

    def part(self, name: str) -> dict[str, Any]:
        """A part of the manifest, empty where it has none of that name."""
        found: dict[str, Any] = json.loads(self.manifest_path.read_text()).get(name, {})
        return found

    def case(self, claw: str, instance_id: str, sample: int = 1) -> CaseFolder:
        """The folder of a case."""
        return CaseFolder(self.path / claw / folder_name(instance_id, sample), claw, instance_id, sample)

    def cases(self) -> list[CaseFolder]:
        """Every case that has a folder, by claw and instance: an order that no timing changes."""
        marks = ("case.json", METADATA)
        return [
            CaseFolder(claw / name, claw.name, *parts_of(name))
            for claw in map(self.path.joinpath, _folders(self.path))
            for name in _folders(claw)
            if any(os.path.exists(f"{claw}/{name}/{mark}") for mark in marks)  # noqa: PTH110 - thousands, many times
        ]

    def request_logs(self) -> list[Path]:
        """What every attempt of every case asked the model, those that were thrown away included."""
        return sorted([*self.path.glob(f"*/*/{REQUESTS}"), *self.path.glob(f"{EARLIER}/*/*/*.jsonl")])

    def note(self, case: CaseFolder, event: str, **more: Any) -> None:
        """Write a transition of a case to the journal (raises OSError)."""
        facts = {
            "claw": case.claw,
            "instance_id": case.instance_id,
            "sample": case.sample,
            "attempt": case.attempt,
        }
        self.journal.write(event, **{**facts, **more})

    def finish(self, case: CaseFolder, facts: Mapping[str, Any], *, ended: bool = True, **more: Any) -> None:
        """Write down what a case counts as: in the journal, in its folder, and in the journal that it is there.

        Args:
            case: the case.
            facts: its metadata, with the outcome.
            ended: whether the case is over; else it is run again.
            more: what else the journal is to say.

        Raises:
            OSError: it can't be written.
        """
        told = {"outcome": facts["outcome"], "detail": facts.get("detail", ""), **more}
        event = "judged" if ended else "errored"
        case.finish(facts, lambda digest: self.note(case, event, **told, metadata_sha256=digest))
        if ended:
            self.note(case, "finished", outcome=facts["outcome"], **more)

    def remove_if_nothing_happened(self) -> bool:
        """Remove a run that was made in vain: nothing is in its folder but what every command puts there.

        This is for who made the folder: one that was there before may be anyone's.
        """
        if not {path.name for path in self.path.iterdir()} <= _OF_EVERY_COMMAND:
            return False
        shutil.rmtree(self.path, ignore_errors=True)
        return True

    def remove_leftovers(self) -> None:
        """Remove what a kill left half-written; for who holds the run, so not in the folders of cases."""
        for path in [*self.path.glob(".*"), *self.path.glob("*/.*")]:
            if is_leftover(path):
                path.unlink(missing_ok=True)


def _folders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []  # it is made, or was removed at this moment


def _refusal(run_id: str, different: list[str]) -> str:
    return "\n".join(
        [
            f"run {run_id} was made with other settings; take another --run-id, or give it what it had:",
            *(f"  {line}" for line in different),
        ]
    )


def _differences(held: Mapping[str, Any], given: Mapping[str, Any], prefix: str) -> list[str]:
    lines = []
    for name in sorted({*held, *given}):
        before, after = held.get(name), given.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            lines += _differences(before, after, f"{prefix}{name}.")
        elif before != after:
            lines.append(f"{prefix}{name}: the run has {before!r}, this command {after!r}")
    return lines
