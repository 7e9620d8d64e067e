"""One case's folder: its files by their digests, and that what it says in several places agrees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from clawbench.accounts import facts_of
from clawbench.verification.findings import Verification, again
from evaluation.judgement import EvaluationError, read_judgement
from evaluation.outcomes import POLICY, Ending, Outcome, Verdict, outcome_of
from gateway.case import counts_of
from gateway.models import CaseCounts
from records.case import FILES, METADATA, REQUESTS, CaseFolder
from records.digests import digest_of, digests_of, files_below
from records.files import is_leftover

_TIMED = {"seconds", "detail"}
"""What an outcome says otherwise than the export did: the evaluation adds to it."""
_ENDED_BY_THE_TESTS = "the tests ended their own container"
"""`evaluation.judgement` says so where only the engine knew; the logs alone don't tell."""


class CaseCheck:
    """Checks one case."""

    def __init__(self, found: Verification, folder: CaseFolder, name: str, manifest: Mapping[str, Any]) -> None:
        """Nothing is read yet.

        Args:
            found: gets what is wrong.
            folder: the case's.
            name: the case's id.
            manifest: of the run.
        """
        self._found = found
        self._folder = folder
        self._name = name
        self._run = manifest

    def check(self, vouched: str | None) -> Outcome | None:
        """Check it.

        Args:
            vouched: the digest that the journal has of its outcome; None where it has none.

        Returns:
            its outcome; None where it has none that could be read.
        """
        for path in files_below(self._folder.path):
            if is_leftover(path):
                self._found.notes.append(f"{self._name}: {path.name} was left half-written by a kill")
        metadata = self._folder.metadata()
        if metadata is None:
            return None
        text = (self._folder.path / METADATA).read_bytes()
        if vouched is None:
            self._blame(f"the journal knows of no outcome, and {METADATA} has one")
        elif sha256(text).hexdigest() != vouched:
            self._blame(f"{METADATA} is not what the journal vouches for")
        self._check_files(metadata)
        try:
            outcome = Outcome(metadata["outcome"])
            if not POLICY[outcome].run_again:
                self._check_agreement(metadata, outcome)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._blame(f"what it says can't be understood: {error!r}")
            return None
        return outcome

    def _blame(self, what: str) -> None:
        self._found.blame(self._name, what, again(self._name))

    # -- files ----------------------------------------------------------------------------------------

    def _check_files(self, metadata: Mapping[str, Any]) -> None:
        path = self._folder.path / FILES
        try:
            text = path.read_bytes()
            listed = json.loads(text)
        except (FileNotFoundError, ValueError):
            listed = None
        if not isinstance(listed, dict):
            self._blame(f"{FILES} is not there, or not whole")
            return
        if sha256(text).hexdigest() != metadata.get("files_sha256"):
            self._blame(f"{FILES} is not what {METADATA} vouches for")
        there = digests_of(self._folder.path, without={FILES, METADATA})
        self._found.files += len(there)
        for name in sorted(listed.keys() - there.keys()):
            self._blame(f"{name} is gone")
        for name in sorted(there.keys() & listed.keys()):
            if there[name] != listed[name]:
                self._blame(f"{name} was changed after the case had ended")
        for name in sorted(there.keys() - listed.keys()):
            self._found.blame(self._name, f"{name} is none of its files", "remove it, or move it elsewhere")

    # -- what must agree ------------------------------------------------------------------------------

    def _check_agreement(self, metadata: Mapping[str, Any], outcome: Outcome) -> None:
        for what in (
            *self._names(metadata),
            *self._patch(metadata),
            *self._verdict(metadata, outcome),
            *self._requests(metadata),
            *self._attribution(),
        ):
            self._blame(what)

    def _names(self, metadata: Mapping[str, Any]) -> Iterator[str]:
        folder = self._folder
        wanted = {"claw": folder.claw, "instance_id": folder.instance_id, "sample": folder.sample}
        for name, value in wanted.items():
            if metadata.get(name) != value:
                yield f"{METADATA} is of {name} {metadata.get(name)}"

    def _patch(self, metadata: Mapping[str, Any]) -> Iterator[str]:
        export = _json(self._folder.path / "export.json")
        patch = self._folder.path / "git.patch"
        digest = digest_of(patch).get("sha256") if patch.exists() else None
        if digest is None or digest != metadata.get("patch_sha256"):
            yield "git.patch is not the patch that was judged"
        for name in sorted(export.keys() - _TIMED):
            if metadata.get(name) != export[name]:
                yield f"{METADATA} and export.json differ in {name}"

    def _verdict(self, metadata: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
        verdict = Verdict(metadata["verdict"])
        follows = outcome_of(Ending(metadata["ending"]), verdict)
        if follows is not outcome:
            yield f"outcome {outcome} does not follow from ending {metadata['ending']} and verdict {verdict}"
        logs = self._folder.path / "evaluation"
        if verdict is Verdict.NOT_JUDGED:
            patch = self._folder.path / "git.patch"
            if patch.exists() and patch.stat().st_size:
                yield "its patch is not empty, and was not judged"
            return
        try:
            told = read_judgement(
                logs,
                self._folder.instance_id,
                seconds=0.0,
                ended_from_within=lambda: metadata.get("detail") == _ENDED_BY_THE_TESTS,
            )
        except (EvaluationError, KeyError, ValueError) as error:
            yield f"the official harness's own logs hold no verdict ({error})"
            return
        if told.verdict is not verdict:
            yield f"the official harness's own report says {told.verdict}, {METADATA} says {verdict}"
        elif list(told.failing_tests) != metadata["failing_tests"]:
            yield f"the official harness's own report names other failing tests than {METADATA}"

    def _requests(self, metadata: Mapping[str, Any]) -> Iterator[str]:
        if self._run["settings"].get("gateway") == "off":
            return
        log = self._folder.path / REQUESTS
        counts = counts_of(log) if log.exists() else CaseCounts()
        added = facts_of(counts, None, has_price=metadata.get("cost") is not None)
        for name, value in added.items():
            # times that several requests were held back at once count once for the case
            if name != "waited" and _plain(metadata.get(name)) != _plain(value):
                yield f"{REQUESTS} adds up to {name} {value}, {METADATA} says {metadata.get(name)}"

    def _attribution(self) -> Iterator[str]:
        """Whether the case's manifest is of this run."""
        own, run = _json(self._folder.path / "manifest.json"), self._run
        settings = run["settings"]
        for name, value in own.get("settings", {}).items():
            if name in settings and settings[name] != value:
                yield f"its manifest has {name} {value!r}, the run's has {settings[name]!r}"
        claw = run["claws"].get(self._folder.claw, {})
        harnesses = {settings.get("harness"), *(rows.get("harness") for rows in run.get("rows", {}).values())}
        pairs: dict[str, tuple[object, set[Any]]] = {
            "run id": (own.get("run_id"), {run.get("run_id")}),
            "claw": (own.get("claw", {}).get("name"), {self._folder.claw}),
            "claw's version": (own.get("claw", {}).get("version"), {claw.get("version")}),
            "instance": (own.get("instance_id"), {self._folder.instance_id}),
            "sample": (own.get("sample"), {self._folder.sample}),
            "prompt": (own.get("prompt"), {claw.get("prompt")}),
            "prompt's digest": (own.get("prompt_template_sha256"), {claw.get("prompt_sha256")}),
            "harness": (own.get("harness"), harnesses),
        }
        for name, (value, allowed) in pairs.items():
            if value not in allowed:
                told = " or ".join(sorted(str(one) for one in allowed))
                yield f"its manifest has {name} {value!r}, the run's has {told!r}"


def _json(path: Path) -> dict[str, Any]:
    """What a file says; nothing where it is not there or not whole."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _plain(value: object) -> object:
    """A value as JSON has it, so that numbers of either kind compare."""
    return json.loads(json.dumps(value))
