"""Checks whether a claw's cases form a submission to the SWE-bench leaderboard, and if not, what is missing.

The leaderboard's entries are at github.com/SWE-bench/experiments. Its README asks for a folder
`evaluation/<split>/<date>_<name>` with predictions, logs, trajectories and metadata, its `checklist.md` for one
attempt at every instance of the split. So a submission is one sample of one claw over a whole split. Cases that
were not run, have no verdict or are no longer complete on disk are refused before anything is written, with all
reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.lists import DATASETS, by_id
from records.case_folder import CaseFolder
from records.case_id import CaseId
from records.files import RunError
from records.models import CaseManifest, CaseRecord, RunManifest
from records.run_folder import RunDirectory
from reports.numbers import Numbers, numbers_of

_SHOWN = 5


@dataclass(frozen=True)
class Split:
    """A part of the leaderboard for which the suite has instances."""

    name: str
    """The name of its folder in the experiments repository; "" if the leaderboard has none."""
    set_name: str
    """The name of the set in the suite's lists."""
    size: int
    """How many instances a submission must have."""

    @property
    def title(self) -> str:
        """The name for users."""
        return self.name or self.set_name


SPLITS = {
    split.title: split
    for split in (
        Split("verified", "verified_mini", 500),
        Split("multilingual", "multilingual", 300),
        Split("", "demo", 10),
    )
}
"""By name. Verified-Mini is not a split of the leaderboard: it has 50 of Verified's 500 instances."""


@dataclass(frozen=True)
class Finished:
    """A complete case: its folder with its records, read once."""

    folder: CaseFolder
    record: CaseRecord
    manifest: CaseManifest

    @property
    def is_resolved(self) -> bool:
        """Whether the official harness resolved it."""
        return self.record.policy.passes

    @property
    def has_patch(self) -> bool:
        """Whether there was anything to judge."""
        return bool(self.folder.patch())

    @property
    def has_test_output(self) -> bool:
        """Whether its tests were run, which they are not if its patch could not be applied."""
        return (self.folder.path / "evaluation" / "test_output.txt").is_file()


@dataclass(frozen=True)
class Submission:
    """One sample of one claw over a split, with all cases finished."""

    run: RunDirectory
    claw: str
    split: Split
    sample: int
    cases: Sequence[Finished]
    numbers: Numbers
    manifest: RunManifest
    """The run's manifest."""

    @property
    def is_whole(self) -> bool:
        """Whether it covers a whole split of the leaderboard."""
        return bool(self.split.name) and len(self.cases) == self.split.size

    @property
    def has_model(self) -> bool:
        """Whether a model answered, not a script or a recording."""
        return not self.model.startswith(("scripted:", "replay:"))

    @property
    def model(self) -> str:
        """The model that the claw worked with."""
        return self.manifest.settings.model

    @property
    def version(self) -> str:
        """The claw's version."""
        return self.manifest.claws[self.claw].version

    @property
    def default_name(self) -> str:
        """A folder name as in the experiments repository: the date of the last verdict, the claw and the model."""
        day = max(case.record.finished[:10] for case in self.cases).replace("-", "")
        sample = f"_s{self.sample}" if self.sample > 1 else ""
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{self.numbers.agent_label}_{self.model}")
        return f"{day}_{slug}{sample}".lstrip("_")


def claws_of(run: RunDirectory) -> list[str]:
    """The claws that have cases or planned cases in a run."""
    return sorted({case.id.claw for case in run.cases()} | {case.claw for case in run.plan.cases()})


def gather(run: RunDirectory, claw: str, *, split: str | None, sample: int, subset: bool) -> Submission:
    """Check that a claw's cases form a submission.

    Args:
        run: the run.
        claw: the claw.
        split: one of `SPLITS`; None if the run has instances of only one.
        sample: which sample of each instance.
        subset: whether instances of the split may be missing if no command selected them.

    Raises:
        RunError: they don't; the message has all reasons.
        OSError: a file can't be read.
    """
    manifest = run.manifest()
    if manifest.settings.made_elsewhere:
        raise RunError(f"run {run.run_id} judged predictions that were made elsewhere: submit them from there")
    if not manifest.settings.has_gateway:
        raise RunError(
            f"run {run.run_id} was made without the gateway: its claws had the user's own credentials, which its "
            "artifacts may contain, so it is not exported"
        )
    if manifest.settings.adapter_parts is not None:
        raise RunError(
            f"run {run.run_id} measured parts of the adapter (--adapter-parts): submit a run without that"
        )
    asked = [case for case in _asked_for(run) if case.claw == claw]
    if not asked or claw not in manifest.claws:
        raise RunError(f"run {run.run_id} has no cases of {claw}: it has {', '.join(claws_of(run)) or 'none'}")
    chosen = _split(split, asked, run.run_id)
    asked = [case for case in asked if _set_of(case.instance_id) == chosen.set_name]
    if sample not in {case.sample for case in asked}:
        most = max((case.sample for case in asked), default=0)
        raise RunError(f"run {run.run_id} has no sample {sample} of {claw}: it has {most}")
    cases, problems = _finished(run, asked)
    cases = [case for case in cases if case.folder.id.sample == sample]
    problems += _of_the_split(chosen, {case.instance_id for case in asked if case.sample == sample}, subset=subset)
    names = sorted({case.record.model_name_or_path for case in cases})
    if len(names) > 1:
        problems.append(f"  the predictions have {len(names)} names, but must have one: {', '.join(names)}")
    if problems:
        raise RunError(
            "\n".join([f"run {run.run_id} is not a submission of {claw} for {chosen.title}:", *problems])
        )
    numbers = next(one for one in numbers_of(run) if one.claw == claw)
    return Submission(run, claw, chosen, sample, cases, numbers, manifest)


def _asked_for(run: RunDirectory) -> list[CaseId]:
    """The planned cases, and cases that have a folder although they are not in the plan."""
    there = {case.id for case in run.cases()}
    return sorted(there | set(run.plan.cases()))


def _set_of(instance_id: str) -> str | None:
    listed = by_id().get(instance_id)
    return listed.set_name if listed is not None else None


def _split(name: str | None, asked: Iterable[CaseId], run_id: str) -> Split:
    """The split to use (raises RunError if there is none, or several to choose from)."""
    if name is not None:
        if name not in SPLITS:
            raise RunError(f"--split {name}: choose from {', '.join(SPLITS)}")
        return SPLITS[name]
    sets = {_set_of(case.instance_id) for case in asked}
    there = [split for split in SPLITS.values() if split.set_name in sets]
    if len(there) != 1:
        names = ", ".join(split.title for split in there) or "none is known"
        raise RunError(f"run {run_id} has instances of several splits, choose one with --split: {names}")
    return there[0]


def _finished(run: RunDirectory, asked: Iterable[CaseId]) -> tuple[list[Finished], list[str]]:
    """The complete cases, and what is wrong with the others."""
    finished = []
    lacking: dict[str, list[str]] = {}
    for case in asked:
        folder = run.case(case)
        try:
            found = _finished_or_fault(folder)
        except RunError:
            found = "with a record that can't be understood"
        if isinstance(found, Finished):
            finished.append(found)
        else:
            lacking.setdefault(found, []).append(folder.path.name)
    return finished, [_line(why, names) for why, names in lacking.items()]


def _finished_or_fault(folder: CaseFolder) -> Finished | str:
    """A complete case, or what it lacks (raises RunError, OSError)."""
    record, manifest = folder.metadata(), folder.manifest()
    if record is None:
        return "begun, but without a verdict" if folder.path.exists() else "not run"
    if not record.policy.counts:
        return f"ended by {record.outcome}: {record.policy.meaning}"
    if manifest is None:
        return "without a complete manifest"
    if folder.prediction() is None:
        return "whose patch is not what was exported"
    return Finished(folder, record, manifest)


def _of_the_split(split: Split, asked: set[str], *, subset: bool) -> list[str]:
    """The problems of a run that does not cover a whole split."""
    if subset:
        return []
    if not split.name:
        return ["  the embedded tasks are not a split of the leaderboard; --subset writes the layout anyway"]
    known = {name for name, listed in by_id().items() if listed.set_name == split.set_name}
    problems = []
    if known - asked:
        problems.append(_line("never selected", sorted(known - asked)))
    if split.size > len(known):
        problems.append(
            f"  {split.name} has {split.size} instances, and the suite's lists have {len(known)} of them; "
            "--subset writes the layout for those, which the leaderboard does not accept"
        )
    return problems


def _line(why: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"  {len(names)} {'case' if len(names) == 1 else 'cases'} {why}: {', '.join(names[:_SHOWN])}{more}"


def dataset_of(split: Split) -> str:
    """The published dataset of a split's rows."""
    return DATASETS[split.set_name]
