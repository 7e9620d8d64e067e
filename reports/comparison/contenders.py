"""The contenders of a comparison: a claw of a run, or results that another tool reported."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from common.errors import ClawbenchError
from evaluation.lists import by_id
from evaluation.outcomes import POLICY, Outcome
from records.case_id import CaseId
from records.models import CaseManifest, CaseRecord, RunManifest
from records.run_folder import RunDirectory
from reports.comparison.manifest_differences import FIRST_REQUEST, facts_of

QUANTITIES = ("dollars", "tokens", "turns", "seconds")
"""What is compared beside the outcomes, for each case; an unknown value is None, never 0."""


class CompareError(ClawbenchError):
    """Runs can't be compared as requested."""


@dataclass
class Contender:
    """A claw of a run with its results."""

    name: str
    """Unique among the contenders of a comparison."""
    where: str
    """The run's id, or the name of a file."""
    claw: str
    model: str = ""
    """As in `--model`; "" if unknown."""
    outcomes: dict[CaseId, Outcome | None] = field(default_factory=dict)
    """Of all planned cases; None for a case that has none."""
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By instance, what its manifests say, by path; empty if there is no manifest."""
    quantities: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    """By name, then by instance, a value for each sample; see `QUANTITIES`."""
    repositories: dict[str, str] = field(default_factory=dict)
    """By instance, where it is known."""
    languages: dict[str, str] = field(default_factory=dict)
    """By instance, where it is known."""
    is_made_elsewhere: bool = False
    """Whether another tool made the results, so that nothing is known about how."""

    @property
    def results(self) -> dict[str, list[bool | None]]:
        """By instance, whether each sample was resolved; None for a case without a verdict that counts."""
        found: dict[str, list[bool | None]] = defaultdict(list)
        for case, outcome in sorted(self.outcomes.items()):
            found[case.instance_id].append(_is_resolved(outcome))
        return found

    @property
    def counted(self) -> dict[str, list[bool]]:
        """The results without those that don't count."""
        return {name: [one for one in samples if one is not None] for name, samples in self.results.items()}

    def mean_of(self, quantity: str, instance_id: str) -> float | None:
        """The mean over an instance's samples; None if the value of one is unknown."""
        values = self.quantities.get(quantity, {}).get(instance_id, [])
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None


def contenders(arguments: Sequence[str], artifacts: Path) -> list[Contender]:
    """The contenders that a command names.

    Args:
        arguments: each a run (its id or folder), `RUN:CLAW` for one claw of it, or a `report.json` of the official
            harness.
        artifacts: the folder of all runs.

    Raises:
        CompareError, RunError: one can't be found or read.
        OSError: one can't be read.
    """
    found = [contender for argument in arguments for contender in _of_argument(argument, artifacts)]
    claws, places = {one.claw for one in found}, {one.where for one in found}
    for one in found:
        # the shortest name that tells it apart
        one.name = one.claw if len(places) == 1 else one.where if len(claws) == 1 else f"{one.where}:{one.claw}"
    if len({one.name for one in found}) < len(found):
        for number, one in enumerate(found, 1):
            one.name = f"{one.name} ({number})"
    return found


def _of_argument(argument: str, artifacts: Path) -> list[Contender]:
    path = Path(argument)
    if path.suffix == ".json" and path.is_file():
        return [_from_report(path)]
    run, _, claw = argument.rpartition(":") if ":" in argument and not path.exists() else (argument, "", "")
    directory = RunDirectory.found(run, artifacts)
    found = list(contenders_of(directory))
    names = [one.claw for one in found]
    if claw and claw not in names:
        raise CompareError(f"run {directory.run_id} has no claw {claw}; it has {', '.join(names) or 'no case'}")
    if not found:
        raise CompareError(f"run {directory.run_id} has no case yet: there is nothing to compare")
    return [one for one in found if claw in ("", one.claw)]


def contenders_of(run: RunDirectory) -> Iterator[Contender]:
    """The claws of a run, sorted by name (raises RunError, OSError)."""
    manifest = run.manifest()
    planned = set(run.plan.cases()) | {case.id for case in run.cases()}
    for claw in sorted({case.claw for case in planned}):
        contender = Contender(claw, run.run_id, claw, manifest.settings.model)
        contender.is_made_elsewhere = manifest.settings.made_elsewhere
        for case in sorted(case for case in planned if case.claw == claw):
            folder = run.case(case)
            record, of_case = folder.metadata(), folder.manifest()
            contender.outcomes[case] = record.outcome if record is not None else None
            if record is not None:
                contender.languages[case.instance_id] = record.language_group
            if of_case is not None:
                # what is known of patches made elsewhere is how they were judged, not how they came about
                known = {} if contender.is_made_elsewhere else _facts(manifest, of_case, record)
                contender.facts[case.instance_id] = known
                contender.repositories[case.instance_id] = of_case.repo
            for name in QUANTITIES:
                values = contender.quantities.setdefault(name, {}).setdefault(case.instance_id, [])
                values.append(_quantity(record, name) if record is not None else None)
        yield contender


def _facts(run: RunManifest, case: CaseManifest, record: CaseRecord | None) -> dict[str, Any]:
    """What both manifests say about a case; the run's has more about the claw and the suite.

    What its first request asked of the model is known only afterwards, and so is in its record.
    """
    whole = {**run.facts(), **case.facts()}
    whole["settings"] = {**run.facts()["settings"], **whole["settings"]}
    claw = run.claws.get(case.claw.name)
    whole["claw"] = {**(claw.model_dump(mode="json") if claw is not None else {}), **whole["claw"]}
    whole["clawbench"] = run.clawbench.model_dump(mode="json") if run.clawbench is not None else {}
    listed = by_id().get(case.instance_id)
    whole["rows"] = whole["rows"].get(listed.set_name, {}) if listed is not None else whole["rows"]
    if record is not None and record.first_request is not None:
        whole[FIRST_REQUEST] = {
            **record.first_request.model_dump(),
            "models": record.models,
            "served_models": record.served_models,
        }
    for name in ("claws", "limits", "created", "instance_id"):
        del whole[name]  # of other claws, of no effect on results, or what the cases are paired by
    return facts_of(whole)


def _quantity(record: CaseRecord, name: str) -> float | None:
    if name == "seconds":
        return record.seconds.get("agent")
    if name == "turns":
        return record.turns
    if name == "dollars":
        cost = record.cost
        return float(cost.priced) if cost is not None and cost.priced is not None and not cost.unpriced else None
    tokens = record.tokens
    if tokens is None or record.unknown_usage:
        return None
    parts = (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output)
    return None if None in parts else float(sum(part or 0 for part in parts))


def _from_report(path: Path) -> Contender:
    """The results in a report of the official harness (`report.json`), which says nothing about how they came about.

    Raises:
        CompareError: it is not such a report.
    """
    try:
        report = json.loads(path.read_bytes())
        ids = {name: list(report[name]) for name in ("submitted_ids", "resolved_ids")}
        errors = set(report.get("error_ids", ()))
    except (ValueError, TypeError, KeyError) as error:
        raise CompareError(
            f"{path} is not a report of the official harness: it needs submitted_ids and resolved_ids"
        ) from error
    made = Contender(path.stem, str(path), path.stem, is_made_elsewhere=True)
    resolved = set(ids["resolved_ids"])
    for instance_id in ids["submitted_ids"]:
        outcome = Outcome.RESOLVED if instance_id in resolved else Outcome.UNRESOLVED
        made.outcomes[CaseId(made.claw, instance_id)] = (
            Outcome.INFRASTRUCTURE if instance_id in errors else outcome
        )
        made.facts[instance_id] = {}
        if instance_id in by_id():
            made.repositories[instance_id] = by_id()[instance_id].repo
            made.languages[instance_id] = by_id()[instance_id].language_group
    return made


def _is_resolved(outcome: Outcome | None) -> bool | None:
    if outcome is None or not POLICY[outcome].counts:
        return None
    return POLICY[outcome].passes
