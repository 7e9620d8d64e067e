"""One case's folder: every step's product is in it before the next step begins.

`case.json` is written when an attempt begins, `export.json` when its patch is on disk, `metadata.json` when it has
an outcome. They tell how far a killed run got, and the next command continues from there. `files.json` is written
before `metadata.json`, which holds its digest, so that any later change of a file is found.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import InfrastructureError
from records.case_id import CaseId
from records.files import (
    as_json,
    digests_of,
    files_below,
    flush_to_disk,
    flush_tree_to_disk,
    is_leftover,
    write_atomically,
)

if TYPE_CHECKING:
    from filelock import FileLock

    from records.models import CaseManifest, CaseRecord, ExportRecord

MANIFEST = "manifest.json"
EXPORT = "export.json"
METADATA = "metadata.json"
REQUESTS = "requests.jsonl"
"""A line for each request to the model, with its cost. It is kept when an attempt is discarded."""
REQUEST_TEXTS = "requests"
"""The folder in the run with the system prompts and tools of the cases' first requests, once for each digest."""
FILES = "files.json"
"""Size and digest of every file of a case with an outcome, except this one and `metadata.json`."""
EVALUATION = "evaluation"
"""The folder of the official harness's logs."""
MESSAGE_EVALUATION = "evaluation-message"
"""The same for the diff in the claw's final message, with `--collect paired`."""
STRICT_REFUSAL = "`git apply` refuses the diff in its final message"
"""How the detail of a case begins whose patch was refused without asking the official harness."""
MESSAGE_PATCH = "message.patch"
"""The diff in the claw's final message, with `--collect paired`."""
APPLIED_PATCH = "message.applied.patch"
"""What that diff changed, as a diff of the repository before and after."""
SESSION = "session"
"""The folder of the claw's own files."""
_LOADABLE = re.compile(
    r".*\.(py[a-z]?|so|pth)|test.*\.(txt|rst)|\.?pytest\.(ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml",
    re.IGNORECASE,
)
"""Names of files that Python or pytest would load, even in a dry run, from any folder that a command names."""
_SAVED = ".saved"
EARLIER = "earlier_attempts"
"""The folder in the run that keeps the request logs of discarded attempts."""


class LostFolderError(InfrastructureError, FileNotFoundError):
    """A case's folder was removed while the case ran."""


class CaseFolder:
    """`<run>/<claw>/<instance_id>/`, or that of a further sample."""

    def __init__(self, run: Path, case: CaseId) -> None:
        """Name a case's folder in a run's folder; nothing is created."""
        self.path = run / case.claw / case.folder
        self.id = case

    def lock(self) -> FileLock:
        """The lock for the process that works on the case; acquiring it waits for one that a killed run left."""
        from filelock import FileLock  # noqa: PLC0415 - it imports asyncio, which is slow

        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.parent / f".{self.path.name}.lock")

    @property
    def requests(self) -> Path:
        """The log of this attempt's requests to the model."""
        return self.path / REQUESTS

    def forget(self) -> None:
        """Remove all results of the case. Its request log is kept, because what was spent still counts."""
        if not self.path.exists():
            return
        if self.requests.exists():
            earlier = self.path.parent.parent / EARLIER / self.id.claw / self.path.name
            earlier.mkdir(parents=True, exist_ok=True)
            flush_to_disk(self.requests)
            # moved in one step, so that a kill leaves it in one of the two places
            self.requests.replace(earlier / f"{len(list(earlier.iterdir())) + 1}.jsonl")
        # the files that say how far it got are removed first, so that a kill in between leaves nothing that counts
        for mark in (METADATA, EXPORT):
            (self.path / mark).unlink(missing_ok=True)
        shutil.rmtree(self.path)

    def begin(self) -> None:
        """Empty the folder and record that the next attempt at the case has begun."""
        from records.models import AttemptRecord, write_record  # noqa: PLC0415

        case, attempt = self.id, self.attempt + 1
        self.forget()
        record = AttemptRecord(claw=case.claw, instance_id=case.instance_id, sample=case.sample, attempt=attempt)
        write_record(self.path / "case.json", record)

    @property
    def attempt(self) -> int:
        """The number of the attempt in the folder, counted from 1; 0 if there is none."""
        from records.models import AttemptRecord, read_record  # noqa: PLC0415

        record = read_record(self.path / "case.json", AttemptRecord)
        return record.attempt if record is not None else 0

    def keep_manifest(self, manifest: CaseManifest) -> None:
        """Write the case's manifest, before the agent starts."""
        from records.models import write_record  # noqa: PLC0415

        write_record(self.path / MANIFEST, manifest)

    def manifest(self) -> CaseManifest | None:
        """The case's manifest; None if it is missing or incomplete (raises RunError, OSError)."""
        from records.models import CaseManifest, read_record  # noqa: PLC0415

        return read_record(self.path / MANIFEST, CaseManifest)

    def require_manifest(self) -> None:
        """Check that the case's folder still exists (raises LostFolderError).

        The next file that is written would recreate a folder that was removed while the case ran.
        """
        if not (self.path / MANIFEST).is_file():
            raise LostFolderError(f"{self.path} was removed while the case ran")

    def write_text(self, name: str, text: str) -> Path:
        """Write one of the artifacts, without translating line ends."""
        path = self.path / name
        write_atomically(path, text.encode("utf-8", "surrogatepass"))
        return path

    def disarm_session(self) -> None:
        """Add `.saved` to the names of session files that Python or pytest on this machine would run.

        The agent wrote them. A `conftest.py` runs as soon as pytest looks for tests in its folder. A second call
        changes nothing.
        """
        found = [path for path in (self.path / SESSION).rglob("*") if _LOADABLE.fullmatch(path.name)]
        for path in sorted(found, reverse=True):  # what is in a folder before the folder
            target = path.with_name(path.name + _SAVED)
            while target.is_symlink() or target.exists():
                target = target.with_name(target.name + _SAVED)
            path.rename(target)

    def keep_export(
        self, record: ExportRecord, patch: str, raw: str, dropped: Iterable[Mapping[str, Any]]
    ) -> None:
        """Save the exported patch. It counts once this returns, as long as it is not changed.

        Args:
            record: what is known about the claw's work; the patch's digest is added.
            patch: the patch to judge.
            raw: the patch before cleaning.
            dropped: what was left out of the patch, with the reasons.
        """
        from records.models import write_record  # noqa: PLC0415

        self.require_manifest()
        self.write_text("git.patch", patch)
        self.write_text("git.patch.raw", raw)
        self.write_text("dropped.json", json.dumps(list(dropped), indent=2, ensure_ascii=False))
        # other processes wrote the session, the logs and the request log
        flush_tree_to_disk(self.path)
        digest = sha256(patch.encode()).hexdigest()
        write_record(self.path / EXPORT, record.model_copy(update={"patch_sha256": digest}))

    def export(self) -> ExportRecord | None:
        """The record of the export; None without a complete patch (raises RunError, OSError)."""
        found = self._exported()
        return found[0] if found is not None else None

    def _exported(self) -> tuple[ExportRecord, bytes] | None:
        from records.models import ExportRecord, read_record  # noqa: PLC0415

        record = read_record(self.path / EXPORT, ExportRecord)
        try:
            patch = (self.path / "git.patch").read_bytes()
        except FileNotFoundError:
            return None
        is_whole = record is not None and record.patch_sha256 == sha256(patch).hexdigest()
        return (record, patch) if record is not None and is_whole else None

    def patch(self) -> str:
        """The exported patch to judge."""
        return (self.path / "git.patch").read_bytes().decode()

    def finish(self, record: CaseRecord, vouch: Callable[[str], None]) -> None:
        """Write the digests of all files, then the outcome.

        Args:
            record: the case's record; the digest of `files.json` is added.
            vouch: stores the digest of `metadata.json` elsewhere. It is called before that file is written, so
                that the folder never holds an outcome that nothing vouches for.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        for path in [path for path in files_below(self.path) if is_leftover(path)]:
            path.unlink()
        flush_tree_to_disk(self.path)  # a digest on disk promises that the content is on disk, too
        files = as_json(digests_of(self.path, without={FILES, METADATA}))
        write_atomically(self.path / FILES, files)
        whole = record.model_copy(update={"files_sha256": sha256(files).hexdigest()})
        metadata = as_json(whole.facts())
        vouch(sha256(metadata).hexdigest())
        write_atomically(self.path / METADATA, metadata)

    def metadata(self) -> CaseRecord | None:
        """The record of the case; None if it has no outcome yet (raises RunError, OSError)."""
        from records.models import CaseRecord, read_record  # noqa: PLC0415

        return read_record(self.path / METADATA, CaseRecord)

    def final_verdict(self) -> CaseRecord | None:
        """The record of a case with a final outcome and a patch; None if the same command would run it again.

        Raises:
            RunError: one of its records can't be understood.
            OSError: it can't be read.
        """
        record = self.metadata()
        if record is None or record.policy.run_again:
            return None
        export = self.export()
        return record if export is not None and export.is_final else None

    def prediction(self) -> dict[str, str] | None:
        """The row for the official harness; None if there is no final patch (raises RunError, OSError)."""
        found = self._exported()
        if found is None or not found[0].is_final:
            return None
        export, patch = found
        return {
            "instance_id": self.id.instance_id,
            "model_name_or_path": export.model_name_or_path,
            "model_patch": patch.decode(),
        }
