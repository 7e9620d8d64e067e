"""What a run can hand to the SWE-bench leaderboard, and all that keeps it from doing so.

The leaderboard's entries are kept at github.com/SWE-bench/experiments. Its README asks for a folder
`evaluation/<split>/<date>_<name>` with predictions, logs, trajectories and metadata, its `checklist.md` for one
attempt at every instance of the split. So a submission is one claw's, of one sample, over one whole split. What
was not run, has no verdict, or is not whole on disk any more is refused here, before anything is written: every
reason is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.lists import DATASETS, by_id
from evaluation.outcomes import POLICY, Outcome
from records.case import CaseFolder
from records.plan import PlannedCase
from records.run import RunDirectory
from reports.numbers import Numbers, numbers_of

_SHOWN = 5


class SubmissionError(ValueError):
    """A run is no submission; the message tells everything that it lacks."""


@dataclass(frozen=True)
class Split:
    """A part of the leaderboard, as far as the suite's lists reach."""

    name: str
    """As its folder in the experiments repository is called; "" where the leaderboard has none."""
    set_name: str
    """Of the suite's lists."""
    size: int
    """Instances that a submission must have."""

    @property
    def title(self) -> str:
        """As users name it."""
        return self.name or self.set_name


SPLITS = {
    split.title: split
    for split in (
        Split("verified", "verified_mini", 500),
        Split("multilingual", "multilingual", 300),
        Split("", "demo", 10),
    )
}
"""By name. Verified-Mini is no split of the leaderboard's: its instances are a tenth of Verified's 500."""


@dataclass(frozen=True)
class Finished:
    """A case that is whole: its folder with what it says, read once."""

    folder: CaseFolder
    metadata: dict[str, Any]
    manifest: dict[str, Any]

    @property
    def is_resolved(self) -> bool:
        """Whether the official harness resolved it."""
        return POLICY[Outcome(self.metadata["outcome"])].passes

    @property
    def has_patch(self) -> bool:
        """Whether there was anything to judge."""
        return bool(self.folder.patch())

    @property
    def has_test_output(self) -> bool:
        """Whether its tests were run: not where its patch could not be applied."""
        return (self.folder.path / "evaluation" / "test_output.txt").is_file()


@dataclass(frozen=True)
class Submission:
    """One claw's cases of one sample over a split, all of them finished."""

    run: RunDirectory
    claw: str
    split: Split
    sample: int
    cases: Sequence[Finished]
    numbers: Numbers
    manifest: dict[str, Any]
    """The run's."""

    @property
    def is_whole(self) -> bool:
        """Whether every instance of a split of the leaderboard is there."""
        return bool(self.split.name) and len(self.cases) == self.split.size

    @property
    def has_model(self) -> bool:
        """Whether a model was at work, and not a script or a recording."""
        return not self.model.startswith(("scripted:", "replay:"))

    @property
    def model(self) -> str:
        """The model that the claw worked with."""
        return str(self.manifest["settings"]["model"])

    @property
    def version(self) -> str:
        """The claw's."""
        return str(self.manifest["claws"][self.claw]["version"])

    @property
    def default_name(self) -> str:
        """As the experiments repository names folders: the date, of the last verdict here, and what it is of."""
        day = max(str(case.metadata.get("finished", ""))[:10] for case in self.cases).replace("-", "")
        sample = f"_s{self.sample}" if self.sample > 1 else ""
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{self.numbers.name}_{self.model}")
        return f"{day}_{slug}{sample}".lstrip("_")


def claws_of(run: RunDirectory) -> list[str]:
    """The claws that a run has cases of, or was asked for."""
    return sorted({case.claw for case in run.cases()} | {case.claw for case in run.plan.cases()})


def gather(run: RunDirectory, claw: str, *, split: str | None, sample: int, subset: bool) -> Submission:
    """See that a claw's cases are a submission.

    Args:
        run: the run.
        claw: the claw.
        split: one of `SPLITS`; None stands for the only one that the run has instances of.
        sample: which of several samples of each instance.
        subset: whether instances of the split that were not asked for may be missing; others never may.

    Raises:
        SubmissionError: they are not; every reason is in the message.
        PlanError: the run's plan can't be read.
        OSError: a file can't be read.
    """
    manifest = _manifest(run)
    if manifest["settings"].get("gateway", "on") != "on":
        raise SubmissionError(
            f"run {run.run_id} was made without the gateway: its claws had their users' own credentials, and what "
            "they left behind may show them, so it is not exported"
        )
    asked = [case for case in _asked_for(run) if case.claw == claw]
    if not asked or claw not in manifest["claws"]:
        raise SubmissionError(
            f"run {run.run_id} has no cases of {claw}: it has {', '.join(claws_of(run)) or 'none'}"
        )
    chosen = _split(split, asked, run.run_id)
    asked = [case for case in asked if _set_of(case.instance_id) == chosen.set_name]
    if sample not in {case.sample for case in asked}:
        most = max((case.sample for case in asked), default=0)
        raise SubmissionError(f"run {run.run_id} has no sample {sample} of {claw}: it has {most}")
    cases, problems = _finished(run, asked)
    cases = [case for case in cases if case.folder.sample == sample]
    problems += _of_the_split(chosen, {case.instance_id for case in asked if case.sample == sample}, subset=subset)
    names = sorted({case.metadata["model_name_or_path"] for case in cases})
    if len(names) > 1:
        problems.append(f"  predictions go by {len(names)} names, and must go by one: {', '.join(names)}")
    if problems:
        raise SubmissionError(
            "\n".join([f"run {run.run_id} is no submission of {claw} for {chosen.title}:", *problems])
        )
    try:
        numbers = next(one for one in numbers_of(run) if one.claw == claw)
    except ValueError as error:  # of another claw's case
        raise SubmissionError(f"run {run.run_id} has a case with an outcome that there is not: {error}") from error
    return Submission(run, claw, chosen, sample, cases, numbers, manifest)


def _manifest(run: RunDirectory) -> dict[str, Any]:
    try:
        held: dict[str, Any] = json.loads(run.manifest_path.read_bytes())
        if not all(isinstance(held[part], dict) for part in ("settings", "claws")):
            raise TypeError("settings and claws must be mappings")
    except FileNotFoundError as error:
        raise SubmissionError(f"{run.path} is no run: it has no manifest.json") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SubmissionError(f"{run.manifest_path} is not a manifest: {error}") from error
    return held


def _asked_for(run: RunDirectory) -> list[PlannedCase]:
    """What the run was asked for; what it has is of that, whether the plan says so or not."""
    there = {PlannedCase(case.claw, case.instance_id, case.sample) for case in run.cases()}
    return sorted(there | set(run.plan.cases()))


def _set_of(instance_id: str) -> str | None:
    listed = by_id().get(instance_id)
    return listed.set_name if listed is not None else None


def _split(name: str | None, asked: Iterable[PlannedCase], run_id: str) -> Split:
    """Raises SubmissionError: there is no such split, or more than one to choose from."""
    if name is not None:
        if name not in SPLITS:
            raise SubmissionError(f"--split {name}: there are {', '.join(SPLITS)}")
        return SPLITS[name]
    sets = {_set_of(case.instance_id) for case in asked}
    there = [split for split in SPLITS.values() if split.set_name in sets]
    if len(there) != 1:
        names = ", ".join(split.title for split in there) or "none of the suite's"
        raise SubmissionError(f"run {run_id} has instances of several splits, say which by --split: {names}")
    return there[0]


def _finished(run: RunDirectory, asked: Iterable[PlannedCase]) -> tuple[list[Finished], list[str]]:
    """The cases that are whole, and what is wrong with the others."""
    finished = []
    lacking: dict[str, list[str]] = {}
    for name in asked:
        folder = run.case(*name)
        metadata, shown = folder.metadata(), folder.path.name
        if metadata is None:
            begun = folder.path.exists()
            lacking.setdefault("begun, and without a verdict" if begun else "not run", []).append(shown)
            continue
        if metadata["outcome"] not in list(Outcome):
            lacking.setdefault("with an outcome that there is not", []).append(shown)
            continue
        outcome = Outcome(metadata["outcome"])
        if not POLICY[outcome].counts:
            lacking.setdefault(f"ended by {outcome}: {POLICY[outcome].meaning}", []).append(shown)
            continue
        manifest = _manifest_of(folder)
        fault = "its manifest is gone, or not whole" if manifest is None else _fault(folder, outcome)
        if manifest is None or fault:
            lacking.setdefault(str(fault), []).append(shown)
            continue
        finished.append(Finished(folder, metadata, manifest))
    return finished, [_line(why, names) for why, names in lacking.items()]


def _manifest_of(folder: CaseFolder) -> dict[str, Any] | None:
    try:
        found = json.loads((folder.path / "manifest.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _fault(folder: CaseFolder, outcome: Outcome) -> str | None:
    """What of a finished case is not there any more, or contradicts itself; None where it is whole."""
    if folder.prediction() is None:
        return "its patch is not what was exported"
    evaluation = folder.path / "evaluation"
    report = evaluation / "report.json"
    if not folder.patch() or not report.is_file():
        # what was not judged can't have been resolved; what could not be applied has no report
        return "resolved, without the official harness's report" if POLICY[outcome].passes else None
    try:
        resolved = bool(json.loads(report.read_bytes())[folder.instance_id]["resolved"])
    except (ValueError, KeyError, TypeError):
        return "the official harness's report is not whole"
    if POLICY[outcome].passes and not resolved:
        return "resolved, which the official harness's report does not say"
    return None if (evaluation / "test_output.txt").is_file() else "the output of its tests is gone"


def _of_the_split(split: Split, asked: set[str], *, subset: bool) -> list[str]:
    """What a split has beyond what was asked for."""
    if subset:
        return []
    if not split.name:
        return ["  the embedded tasks are no split of the leaderboard; --subset writes the layout all the same"]
    known = {name for name, listed in by_id().items() if listed.set_name == split.set_name}
    problems = []
    if known - asked:
        problems.append(_line("never asked for", sorted(known - asked)))
    if split.size > len(known):
        problems.append(
            f"  {split.name} has {split.size} instances, and the suite's lists have {len(known)} of them; "
            "--subset writes the layout for those, which the leaderboard does not take"
        )
    return problems


def _line(why: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"  {len(names)} {'case' if len(names) == 1 else 'cases'} {why}: {', '.join(names[:_SHOWN])}{more}"


def dataset_of(split: Split) -> str:
    """The published dataset that a split's rows are of."""
    return DATASETS[split.set_name]


def evaluation_file(case: Finished, name: str) -> Path:
    """One of the files that the official harness left of a case, there or not."""
    return case.folder.path / "evaluation" / name
