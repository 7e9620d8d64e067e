"""Verifies one case: its files match their digests, and values that are recorded in several places agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from evaluation.judgement import EvaluationError, read_judgement
from evaluation.outcomes import Outcome, Verdict, outcome_of
from records.case_folder import EXPORT, FILES, METADATA, REQUEST_TEXTS, REQUESTS, STRICT_REFUSAL, CaseFolder
from records.files import RunError, digest_of, digests_of, files_below, is_leftover
from records.models import CaseRecord, ExportRecord, ModelUse, RunManifest, read_record

CountUse = Callable[[Path, bool], ModelUse]
"""Adds up a request log, which need not exist; the second argument is whether the requests have a price."""
_REMOVE = "remove it, or move it elsewhere"
_CHANGED_BY_EVALUATION = {"seconds", "detail"}
_NOT_ALWAYS_RECORDED = {"models", "served_models", "first_request"}
"""What older versions of the suite did not record."""
_ENDED_BY_THE_TESTS = "the tests ended their own container"
"""A detail that only the engine knew, and that the harness's logs can't confirm (see `evaluation.judgement`)."""


class CaseCheck:
    """The check of one case."""

    def __init__(
        self, folder: CaseFolder, run: RunManifest, count_use: CountUse, blame: Callable[[str, str], None]
    ) -> None:
        """Read nothing yet.

        Args:
            folder: the case's folder.
            run: the run's manifest.
            count_use: adds up the case's request log.
            blame: called with each fault and its remedy; an empty remedy means to run the case again.
        """
        self._folder = folder
        self._run = run
        self._count_use = count_use
        self._blame = blame
        self.files = 0
        """Files that were compared with their digests."""

    def check(self, vouched: str | None) -> Outcome | None:
        """Check the case.

        Args:
            vouched: the digest of its record according to the journal; None if the journal has none.

        Returns:
            its outcome; None if there is none or it can't be read.
        """
        try:
            record = self._folder.metadata()
            if record is None:
                return None
            digest = sha256((self._folder.path / METADATA).read_bytes()).hexdigest()
            if vouched is None:
                self._blame(f"{METADATA} has an outcome that the journal does not know", "")
            elif digest != vouched:
                self._blame(f"{METADATA} does not match the journal's digest", "")
            self._check_files(record)
            if not record.policy.run_again:
                for what in self._contradictions(record):
                    self._blame(what, "")
        except RunError as error:
            self._blame(str(error), "")
            return None
        return record.outcome

    def _check_files(self, record: CaseRecord) -> None:
        try:
            text = (self._folder.path / FILES).read_bytes()
            listed = json.loads(text)
        except (FileNotFoundError, ValueError):
            listed = None
        if not isinstance(listed, dict):
            self._blame(f"{FILES} is missing or incomplete", "")
            return
        if sha256(text).hexdigest() != record.files_sha256:
            self._blame(f"{FILES} does not match the digest in {METADATA}", "")
        there = digests_of(self._folder.path, without={FILES, METADATA})
        self.files = len(there)
        for name in sorted(listed.keys() - there.keys()):
            self._blame(f"{name} is gone", "")
        for name in sorted(there.keys() & listed.keys()):
            if there[name] != listed[name]:
                self._blame(f"{name} was changed after the case had ended", "")
        for name in sorted(there.keys() - listed.keys()):
            self._blame(f"{name} does not belong to the case", _REMOVE)

    def _contradictions(self, record: CaseRecord) -> Iterator[str]:
        case = self._folder.id
        for name in ("claw", "instance_id", "sample"):
            if getattr(record, name) != getattr(case, name):
                yield f"{METADATA} has {name} {getattr(record, name)}"
        yield from self._of_the_patch(record)
        yield from self._of_the_verdict(record)
        if self._run.settings.has_gateway:
            yield from self._of_the_requests(record)
            yield from self._of_the_first_request(record)
        yield from self._of_the_manifest()

    def _of_the_patch(self, record: CaseRecord) -> Iterator[str]:
        patch = self._folder.path / "git.patch"
        if not patch.exists() or digest_of(patch).get("sha256") != record.patch_sha256:
            yield "git.patch is not the patch that was judged"
        export = read_record(self._folder.path / EXPORT, ExportRecord)
        for name in sorted(ExportRecord.model_fields.keys() - _CHANGED_BY_EVALUATION):
            if export is not None and getattr(record, name) != getattr(export, name):
                yield f"{METADATA} and {EXPORT} differ in {name}"

    def _of_the_verdict(self, record: CaseRecord) -> Iterator[str]:
        ending, verdict = record.ending, record.verdict
        if ending is None or outcome_of(ending, verdict) is not record.outcome:
            yield f"outcome {record.outcome} does not follow from ending {ending} and verdict {verdict}"
        if record.detail.startswith(STRICT_REFUSAL) and verdict is Verdict.APPLY_FAILED:
            return  # the official harness was not asked
        if verdict is Verdict.NOT_JUDGED:
            if record.patch_bytes or self._has_patch():
                yield "its patch is not empty, but was not judged"
            return
        try:
            told = read_judgement(
                self._folder.path / "evaluation",
                self._folder.id.instance_id,
                seconds=0.0,
                ended_from_within=lambda: record.detail == _ENDED_BY_THE_TESTS,
            )
        except (EvaluationError, LookupError, ValueError, TypeError, AttributeError) as error:
            yield f"the official harness's logs contain no verdict ({error})"
            return
        if told.verdict is not verdict:
            yield f"the official harness's report says {told.verdict}, {METADATA} says {verdict}"
        elif told.failing_tests != record.failing_tests:
            yield f"the official harness's report names other failing tests than {METADATA}"

    def _has_patch(self) -> bool:
        patch = self._folder.path / "git.patch"
        return patch.exists() and patch.stat().st_size > 0

    def _of_the_requests(self, record: CaseRecord) -> Iterator[str]:
        counted = self._count_use(self._folder.requests, record.cost is not None)
        # if several requests of a case wait at the same time, the case's total counts that time only once
        for name in sorted(ModelUse.model_fields.keys() - {"format", "waited"}):
            ours, theirs = getattr(counted, name), getattr(record, name)
            if name in _NOT_ALWAYS_RECORDED and theirs is None and record.models is None:
                continue
            if ours != theirs:
                yield f"{REQUESTS} adds up to {name} {ours}, but {METADATA} says {theirs}"

    def _of_the_first_request(self, record: CaseRecord) -> Iterator[str]:
        """Whether the texts of the first request are there."""
        first, texts = record.first_request, self._folder.path.parents[1] / REQUEST_TEXTS
        for digest in (first.system_sha256, first.tools_sha256) if first is not None else ():
            path = texts / f"{digest}.json"
            if digest is not None and (not path.exists() or digest_of(path).get("sha256") != digest):
                yield f"{REQUEST_TEXTS}/{path.name}, a text of its first request, is gone or was changed"

    def _of_the_manifest(self) -> Iterator[str]:
        """Whether the case's manifest belongs to this case and run."""
        own, run, case = self._folder.manifest(), self._run.facts(), self._folder.id
        if own is None:
            yield "its manifest.json is missing or incomplete"
            return
        settings, claw = run["settings"], run["claws"].get(case.claw, {})
        for name, value in own.settings.items():
            if name in settings and settings[name] != value:
                yield f"its manifest has {name} {value!r}, the run's has {settings[name]!r}"
        harnesses = {settings["harness"], *(rows["harness"] for rows in run["rows"].values())}
        pairs: dict[str, tuple[object, set[object]]] = {
            "run id": (own.run_id, {run["run_id"]}),
            "claw": (own.claw.name, {case.claw}),
            "claw's version": (own.claw.version, {claw.get("version")}),
            "instance": (own.instance_id, {case.instance_id}),
            "sample": (own.sample, {case.sample}),
            "prompt": (own.prompt, {claw.get("prompt")}),
            "prompt's digest": (own.prompt_template_sha256, {claw.get("prompt_sha256")}),
            "harness": (own.harness, harnesses),
        }
        for name, (value, allowed) in pairs.items():
            if value not in allowed:
                told = " or ".join(sorted(map(str, allowed)))
                yield f"its manifest has {name} {value!r}, the run's has {told!r}"


def leftovers(folder: CaseFolder) -> Iterator[str]:
    """The names of the half-written files that a kill left in a case's folder."""
    return (path.name for path in files_below(folder.path) if is_leftover(path))
