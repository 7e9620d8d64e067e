"""One case's folder: every step's product is in it before the next step begins.

`case.json` is written when a case begins, `export.json` when its patch is on disk, `metadata.json` when it has an
outcome. Whichever is there says how far a killed run got, and a rerun goes on from there. `files.json` comes
before `metadata.json`, which has its digest: what was changed after the outcome is found by it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

from records.digests import digests_of, files_below, see_all_onto_disk
from records.files import as_json, is_leftover, see_onto_disk, write_atomically, write_json

_EXPORT = ("model_name_or_path", "is_final", "ending", "seconds", "patch_sha256")
_OUTCOME = ("outcome", "seconds")
"""What the facts of an export, and of an outcome, hold at the least."""
REQUESTS = "requests.jsonl"
"""What a case asked the model, a line per request: what it cost is in here, and outlives the attempt."""
FILES = "files.json"
"""Size and digest of every file of a case that has an outcome, but of this one and `metadata.json`."""
METADATA = "metadata.json"
"""The outcome and all that goes with it."""
EARLIER = "earlier_attempts"
"""The folder in the run that keeps the requests of attempts that were thrown away."""


def folder_name(instance_id: str, sample: int) -> str:
    """What a case's folder is called below its claw's: the first sample's as the instance.

    So a run that is given more samples later has its first ones where they were.
    """
    return instance_id if sample == 1 else f"{instance_id}-s{sample}"


def parts_of(name: str) -> tuple[str, int]:
    """The instance and the sample that a folder is of; no instance's id ends as a sample's mark does."""
    marked = re.fullmatch(r"(.+)-s([2-9]|[1-9][0-9]+)", name)
    return (marked[1], int(marked[2])) if marked else (name, 1)


class CaseFolder:
    """`<run>/<claw>/<instance_id>/`, or that of a further sample."""

    def __init__(self, path: Path, claw: str, instance_id: str, sample: int = 1) -> None:
        """Name a case's folder; nothing is made."""
        self.path = path
        self.claw = claw
        self.instance_id = instance_id
        self.sample = sample

    def lock(self) -> FileLock:
        """For the process that works on the case; one that a killed run left at work is waited for."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.parent / f".{self.path.name}.lock")

    @property
    def requests(self) -> Path:
        """What this attempt asks the model."""
        return self.path / REQUESTS

    def forget(self) -> None:
        """Remove all that is known of the case, but for what it asked the model: what is spent stays spent."""
        if not self.path.exists():
            return
        if self.requests.exists():
            earlier = self.path.parent.parent / EARLIER / self.claw / self.path.name
            earlier.mkdir(parents=True, exist_ok=True)
            see_onto_disk(self.requests)
            # in one step, so that a kill leaves it in one of the two places
            self.requests.replace(earlier / f"{len(list(earlier.iterdir())) + 1}.jsonl")
        # what says how far it got goes first: a kill on the way leaves nothing that would count
        for mark in (METADATA, "export.json"):
            (self.path / mark).unlink(missing_ok=True)
        shutil.rmtree(self.path)

    def begin(self) -> None:
        """Empty the folder and say that the next attempt at the case has begun."""
        attempt = self.attempt + 1
        self.forget()
        self.path.mkdir(parents=True)
        write_json(
            self.path / "case.json",
            {"claw": self.claw, "instance_id": self.instance_id, "sample": self.sample, "attempt": attempt},
        )

    @property
    def attempt(self) -> int:
        """Which attempt at the case the folder is of, counted from 1; 0 where there is none."""
        facts = _read(self.path / "case.json", ("attempt",))
        return int(facts["attempt"]) if facts is not None else 0

    def keep_manifest(self, facts: Mapping[str, Any]) -> None:
        """Write what the case is attributed to; before the agent starts."""
        write_json(self.path / "manifest.json", facts)

    def known_problems(self) -> dict[str, list[str]]:
        """What its manifest has against its environment, if anything, as `environment_problems`."""
        manifest = _read(self.path / "manifest.json", ("gold",)) or {}
        problems = (manifest.get("gold") or {}).get("problems")
        return {"environment_problems": problems} if problems else {}

    def require_manifest(self) -> None:
        """Refuse to go on without what the case is attributed to (raises FileNotFoundError).

        A folder that was removed while the case ran is made anew by the next file in it.
        """
        if not (self.path / "manifest.json").is_file():
            raise FileNotFoundError(
                f"the manifest of {self.instance_id} is gone: its folder was removed in mid-run"
            )

    def write_text(self, name: str, text: str) -> Path:
        """Write one of the artifacts, bytes as given."""
        path = self.path / name
        write_atomically(path, text.encode("utf-8", "surrogatepass"))
        return path

    def keep_export(
        self, facts: Mapping[str, Any], patch: str, raw: str, dropped: list[Mapping[str, Any]]
    ) -> None:
        """Keep the exported patch; it counts from the moment that this returns, as long as it stays as it is.

        Args:
            facts: with `model_name_or_path`, and `is_final`: whether the patch is the claw's last word, or only
                what was there when something around it broke.
            patch: what is judged.
            raw: the same before cleaning.
            dropped: what the patch does not carry, with the reasons.
        """
        self.require_manifest()
        self.write_text("git.patch", patch)
        self.write_text("git.patch.raw", raw)
        write_atomically(self.path / "dropped.json", json.dumps(dropped, indent=2, ensure_ascii=False).encode())
        # what goes with it has come in from others: the claw's session and logs, the gateway's requests
        see_all_onto_disk(self.path)
        write_json(self.path / "export.json", {**facts, "patch_sha256": sha256(patch.encode()).hexdigest()})

    def export(self) -> dict[str, Any] | None:
        """The facts of the export, or None where there is none (yet), or its patch is not whole any more."""
        found = self._exported()
        return found[0] if found is not None else None

    def _exported(self) -> tuple[dict[str, Any], bytes] | None:
        """The facts of the export, and its patch."""
        facts = _read(self.path / "export.json", _EXPORT)
        try:
            patch = (self.path / "git.patch").read_bytes()
        except FileNotFoundError:
            return None
        return (facts, patch) if facts is not None and facts["patch_sha256"] == sha256(patch).hexdigest() else None

    def patch(self) -> str:
        """The exported patch that is judged."""
        return (self.path / "git.patch").read_bytes().decode()

    def finish(self, facts: Mapping[str, Any], vouch: Callable[[str], None]) -> None:
        """Write the outcome and all that goes with it, and before it the digests of all files.

        Args:
            facts: with the outcome.
            vouch: writes the digest of `metadata.json` down elsewhere. It is called before the file is there, so
                that no outcome is in the folder that nothing else knows of.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        for path in [path for path in files_below(self.path) if is_leftover(path)]:
            path.unlink()
        see_all_onto_disk(self.path)  # of what there is a digest, there is to be the content as well
        files = as_json(digests_of(self.path, without={FILES, METADATA}))
        write_atomically(self.path / FILES, files)
        metadata = as_json({**facts, "files_sha256": sha256(files).hexdigest()})
        vouch(sha256(metadata).hexdigest())
        write_atomically(self.path / METADATA, metadata)

    def metadata(self) -> dict[str, Any] | None:
        """The outcome and all that goes with it, or None where the case has none (yet)."""
        return _read(self.path / METADATA, _OUTCOME)

    def prediction(self) -> dict[str, str] | None:
        """The row for the official harness, once there is a patch that counts."""
        found = self._exported()
        if found is None or not found[0]["is_final"]:
            return None
        export, patch = found
        return {
            "instance_id": self.instance_id,
            "model_name_or_path": export["model_name_or_path"],
            "model_patch": patch.decode(),
        }


def _read(path: Path, needed: Iterable[str]) -> dict[str, Any] | None:
    """What a file says, or None where it is not there, or not whole."""
    try:
        text = path.read_bytes()
        # half a file can't come from here, but a disk may have lost its end, be it the last byte: what digests
        # vouch for is not there any more
        value = json.loads(text) if text.endswith(b"\n") else None
    except FileNotFoundError:
        return None
    except ValueError:
        return None
    return value if isinstance(value, dict) and set(needed) <= set(value) else None
