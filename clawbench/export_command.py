"""`clawbench export`: a finished run as the SWE-bench experiments repository asks for a submission."""

from __future__ import annotations

from pathlib import Path

from adapters.runtimes import default_home
from clawbench.model_choice import providers_file
from clawbench.report_files import known_places
from clawbench.verification import verify_run
from clawbench.verification.findings import ANEW
from gateway.providers import ProviderConfigError, load_providers, read_key
from gateway.redact import forms
from records.run import RunDirectory
from reports.submission import SubmissionError, claws_of, gather
from reports.submission_files import export, target_of

_SHOWN = 5


def export_run(
    run: RunDirectory,
    to: Path,
    *,
    claws: list[str],
    split: str | None,
    sample: int,
    name: str | None,
    subset: bool,
) -> list[Path]:
    """Write a folder for each claw, or nothing at all where one of them is refused.

    Args:
        run: the run.
        to: the folder that gets them.
        claws: whose; none stands for all that the run has.
        split: of the leaderboard; None is the only one that the run has.
        sample: which of several samples of an instance.
        name: of the new folder, where it is one.
        subset: whether instances of the split may be missing that were not asked for.

    Raises:
        SubmissionError: a claw's cases are no submission; every reason is in the message.
        PlanError: the run's plan can't be read.
        OSError: something can't be read or written.
    """
    wanted = claws or claws_of(run)
    if name is not None and len(wanted) > 1:
        raise SubmissionError(f"--name is of one folder, and this makes {len(wanted)}: say which by --claw")
    if not wanted:
        raise SubmissionError(f"run {run.run_id} has no case")
    problems, submissions = [], []
    for claw in wanted:
        try:
            submissions.append(gather(run, claw, split=split, sample=sample, subset=subset))
        except SubmissionError as error:
            problems.append(str(error))
    if problems:
        raise SubmissionError("\n".join(dict.fromkeys(problems)))  # what all claws lack is told once
    for one in submissions:
        target_of(one, to, name)  # all of them, or none
    _require_soundness(run)
    places = known_places() | {run.path: "", default_home(): ".claws"}
    secrets = _keys()
    return [
        export(one, to, name, places=places, is_secret=lambda data: any(form in data for form in secrets))
        for one in submissions
    ]


def _require_soundness(run: RunDirectory) -> None:
    """Refuse to hand out what was changed after it had been written down (raises SubmissionError, OSError)."""
    # a report or a prediction that is not what it was can be made anew, and is not what is exported
    faults = [str(fault) for fault in verify_run(run).faults if fault.remedy != ANEW]
    if faults:
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        told = [
            f"run {run.run_id} is not as it was written; `clawbench verify` tells all:",
            *faults[:_SHOWN],
            *more,
        ]
        raise SubmissionError("\n  ".join(told))


def _keys() -> list[bytes]:
    """The keys of all declared providers that are set in this environment, as they may stand in a file."""
    found = []
    for provider in load_providers(providers_file()).values():
        try:
            key = read_key(provider)
        except ProviderConfigError:
            continue  # it is not set here
        if key is not None:
            found.append(key.get_secret_value())
    return forms(found)
