"""`clawbench export`: writes a finished run in the layout of the SWE-bench experiments repository."""

from __future__ import annotations

from pathlib import Path

from adapters.runtimes import default_home
from clawbench.run.model_choice import providers_file
from clawbench.run.usage import use_in
from gateway.providers import ProviderConfigError, load_providers, read_key
from gateway.redact import forms
from records.places import known_places
from records.run_folder import RunDirectory, RunError
from records.verification import RERUN_COMMAND, verify_run
from reports.submission import claws_of, gather
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
    """Write a folder for each claw, or nothing if one of them is refused.

    Args:
        run: the run.
        to: the parent of the new folders.
        claws: the claws; empty for all claws of the run.
        split: a split of the leaderboard; None for the only one that the run has.
        sample: which sample of each instance.
        name: the name of the new folder, if there is only one.
        subset: whether instances of the split may be missing, if they were not asked for.

    Raises:
        RunError: a claw's cases do not make a submission; the message has all reasons.
        ProviderConfigError: the declared providers can't be read.
        OSError: a file can't be read or written.
    """
    wanted = claws or claws_of(run)
    if name is not None and len(wanted) > 1:
        raise RunError(f"--name names one folder, but there are {len(wanted)} claws: choose one with --claw")
    if not wanted:
        raise RunError(f"run {run.run_id} has no case")
    problems, submissions = [], []
    for claw in wanted:
        try:
            submissions.append(gather(run, claw, split=split, sample=sample, subset=subset))
        except RunError as error:
            problems.append(str(error))
    if problems:
        raise RunError("\n".join(dict.fromkeys(problems)))  # what all claws lack is reported once
    for one in submissions:
        target_of(one, to, name)  # refuse before anything is written
    _require_soundness(run)
    places = known_places() | {run.path: "", default_home(): ".claws"}
    secrets = _keys()
    return [
        export(one, to, name, places=places, is_secret=lambda data: any(form in data for form in secrets))
        for one in submissions
    ]


def _require_soundness(run: RunDirectory) -> None:
    """Refuse a run that was changed after it was written (raises RunError, OSError)."""
    # changed reports and predictions do not matter: they are not exported
    faults = [str(fault) for fault in verify_run(run, use_in).faults if fault.remedy != RERUN_COMMAND]
    if faults:
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        told = [
            f"run {run.run_id} was changed after it was written; `clawbench verify` lists all faults:",
            *faults[:_SHOWN],
            *more,
        ]
        raise RunError("\n  ".join(told))


def _keys() -> list[bytes]:
    """The keys of all declared providers that are set here, in every form that a file may contain."""
    found = []
    for provider in load_providers(providers_file()).values():
        try:
            key = read_key(provider)
        except ProviderConfigError:
            continue  # it is not set here
        if key is not None:
            found.append(key.get_secret_value())
    return forms(found)
