"""What the page shows, as JSON values: tables that are ready to draw, one row for each case, and each case's details."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

from collection.results import tables
from evaluation.collection import MEANINGS
from evaluation.lists import by_id
from evaluation.outcomes import POLICY, Outcome
from records.case_folder import SESSION, CaseFolder
from records.case_id import CaseId
from records.models import CaseRecord, RunManifest
from records.run_folder import RunDirectory
from reports.collected import collected_of, corruption
from reports.numbers import Numbers, costs_of, numbers_of
from reports.published import published_rows
from reports.samples import PassRate
from reports.trajectory import session_texts

_TEXT_BUDGET = 60_000_000
"""Characters for the texts of all cases together, so that the page stays small enough to open at once."""
_LONGEST_TEXT = 200_000
"""Characters of one text of a case."""
_LONGEST_LOG = 20_000_000
"""Characters of a test log that are searched."""
_LOG_LINES = 60
"""Lines of the tests' output around failures."""
_MOST_COMPARED = 12
"""Contenders up to which all pairs are compared."""


class PageRow:
    """A claw of a run."""

    def __init__(self, run: RunDirectory, manifest: RunManifest, numbers: Numbers, name: str) -> None:
        """Wrap a claw's numbers.

        Args:
            run: the run.
            manifest: the run's.
            numbers: the claw's.
            name: its name on the page, unique there.
        """
        self.run, self.manifest, self.numbers, self.name = run, manifest, numbers, name

    @property
    def model(self) -> str:
        """The model's name."""
        return self.manifest.settings.model

    def cells(self) -> dict[str, Any]:
        """The row of the first table."""
        numbers, cases = self.numbers, self.numbers.cases
        dollars = numbers.cost_usd.priced if numbers.cost_usd is not None else None
        resolved = sum(case.policy.passes for case in cases)
        return {
            "name": self.name,
            "run": self.run.run_id,
            "claw": numbers.agent_label,
            "model": self.model,
            "elsewhere": self.manifest.settings.made_elsewhere,
            "rate": _rate(numbers.pass_at_1),
            "at_least": numbers.pass_at_1_at_least,
            "cases": len(cases),
            "open": len(numbers.without_outcome),
            "dollars": dollars,
            "dollars_per_case": dollars / len(cases) if dollars is not None and cases else None,
            "dollars_per_resolved": dollars / resolved if dollars is not None and resolved else None,
            "seconds": _median(case.seconds.get("agent") for case in cases),
            "turns": _median(case.turns for case in cases),
            "cache": numbers.cache_hit,
            "outcomes": {str(outcome): count for outcome, count in numbers.outcomes.items()},
        }


def _rate(rate: PassRate | None) -> dict[str, Any] | None:
    return None if rate is None else asdict(rate)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def page_rows(runs: Sequence[RunDirectory]) -> list[PageRow]:
    """The claws of some runs (raises RunError, OSError)."""
    found = [(run, run.manifest(), numbers) for run in runs for numbers in numbers_of(run)]
    labels = [numbers.agent_label for _, _, numbers in found]
    several = len(set(labels)) < len(labels)
    return [
        PageRow(run, manifest, numbers, f"{run.run_id}: {numbers.agent_label}" if several else numbers.agent_label)
        for run, manifest, numbers in found
    ]


def overview(rows: Sequence[PageRow]) -> dict[str, Any]:
    """Everything except the details of cases."""
    languages = {case.instance_id: case.language_group for row in rows for case in row.numbers.cases}
    # the id of an instance begins with its repository, also where no instance list has it
    repositories = {name: by_id()[name].repo if name in by_id() else name.rpartition("-")[0] for name in languages}
    return {
        "rows": [row.cells() for row in rows],
        "models": _models(rows),
        "languages": _parts(rows, languages),
        "repositories": _parts(rows, repositories),
        "published": _published(rows),
        "comparison": _comparison(rows),
        "collected": _collected(rows),
        "instances": [[name, languages[name], repositories[name]] for name in sorted(languages)],
        "outcomes": {str(outcome): POLICY[outcome].meaning for outcome in Outcome},
        "cases": [_case(number, case) for number, row in enumerate(rows) for case in row.numbers.cases],
    }


def _parts(rows: Sequence[PageRow], part_of: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "rates": [_rate(row.numbers.part(name, part_of.__getitem__)) for row in rows]}
        for name in sorted(set(part_of.values()))
    ]


def _models(rows: Sequence[PageRow]) -> list[dict[str, Any]]:
    """Each model over its claws, which count alike."""
    found = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        rates = {row.name: row.numbers.pass_at_1.value for row in own if row.numbers.pass_at_1 is not None}
        best = max(rates, key=lambda name: rates[name], default=None)
        mean = fmean(rates.values()) if rates else None
        found.append(
            {"model": model, "claws": len(own), "mean": mean, "best": best, "rate": rates.get(best or "")}
        )
    return found


def _collected(rows: Sequence[PageRow]) -> dict[str, Any]:
    """The ways of the patch side by side, for the rows that were collected in all of them."""
    headings: list[str] = []
    cells: list[list[str]] = []
    for row in rows:
        if found := collected_of(row.numbers.cases):
            ((_, headings, of_row),) = tables(found)
            cells += [[row.name, *one] for one in of_row]
    return {"headings": ["claw", *headings], "rows": cells}


def _published(rows: Sequence[PageRow]) -> list[dict[str, Any]]:
    """The paper's rows for the models on the page: references, and no results of these runs."""
    return [
        {
            "claw": one.claw,
            "model": one.model,
            "rate": one.pass_at_1,
            "instances": one.instances,
            "runs": one.runs,
            "version": one.version,
        }
        for one in published_rows()
        if any(one.is_of(row.model) for row in rows)
    ]


def _comparison(rows: Sequence[PageRow]) -> dict[str, Any]:
    """What can be concluded about each pair, and whether the rows are comparable at all."""
    if len(rows) < 2:
        return {"conclusions": [], "confounded": []}
    from reports.comparison.comparison import compare, unlike_the_first  # noqa: PLC0415 - scipy is slow to import, and one row needs none
    from reports.comparison.contenders import contenders_of  # noqa: PLC0415

    known = {(row.run.run_id, row.numbers.claw): row.name for row in rows}
    runs = {row.run.path: row.run for row in rows}
    found = [one for run in runs.values() for one in contenders_of(run)]
    for one in found:
        one.name = known[one.where, one.claw]
    if len(found) > _MOST_COMPARED:
        told = f"Pairs of more than {_MOST_COMPARED} rows are not compared here: name some to `clawbench compare`."
        return {"conclusions": [told], "confounded": unlike_the_first(found, ("claw", "model"))}
    pairs = compare(found, allow_confounded=False).pairs
    return {
        "conclusions": [pair.conclusion for pair in pairs if pair.is_shown],
        "confounded": [pair.conclusion for pair in pairs if not pair.is_shown],
    }


def _case(row: int, case: CaseRecord) -> list[Any]:
    """A case in the list: its row, instance, sample, outcome, seconds, turns, dollars, detail."""
    costs = costs_of([case])
    dollars = costs[0].priced if costs and costs[0].unpriced == 0 else None
    return [
        row,
        case.instance_id,
        case.sample,
        str(case.outcome),
        case.seconds.get("agent"),
        case.turns,
        float(dollars) if dollars is not None else None,
        case.detail[:300],
    ]


def details(rows: Sequence[PageRow]) -> Iterator[dict[str, Any]]:
    """The details of each case, in the order of `overview`'s cases (raises OSError)."""
    count = sum(len(row.numbers.cases) for row in rows)
    budget = min(_LONGEST_TEXT, _TEXT_BUDGET // max(1, count))
    for row in rows:
        for record in row.numbers.cases:
            folder = row.run.case(CaseId(row.numbers.claw, record.instance_id, record.sample))
            yield _details(folder, record, budget)


def _details(folder: CaseFolder, record: CaseRecord, budget: int) -> dict[str, Any]:
    path = folder.path
    return {
        "folder": str(path),
        "record": record.facts(),
        "patch": _text(path / "git.patch", budget),
        "dropped": _json(path / "dropped.json"),
        "ways": [[str(one.arm), MEANINGS[one.kind], str(one.verdict), one.detail] for one in record.arms],
        "corruption": _cut(corruption(path), budget) if any(one.kind.is_silent for one in record.arms) else "",
        "log": _failures(path / "evaluation" / "test_output.txt", record.failing_tests),
        "turns": list(_turns(folder.requests)),
        "prompt": _text(path / "prompt.txt", budget // 4),
        "session": list(_session(path / SESSION, budget)),
        "output": _text(path / "agent_stdout.log", budget // 4),
        "manifest": _json(path / "manifest.json"),
    }


def _turns(path: Path) -> Iterator[dict[str, Any]]:
    """The requests in a log; a line that a kill cut off is left out."""
    wanted = ("time", "tokens", "cost", "latency", "finish_reason", "ending", "removed_calls", "error")
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        with suppress(ValueError):
            row = json.loads(line)
            yield {name: row.get(name) for name in wanted}


def _session(folder: Path, budget: int) -> Iterator[tuple[str, str]]:
    """The files of a session, until the budget is used up."""
    left = budget
    for name, text in session_texts(folder):
        if left <= 0:
            yield "more files", "[left out here; they are in the case's folder]"
            return
        yield name, _cut(text, left)
        left -= len(text)


def _json(path: Path) -> Any:
    """A file's content; None if it is missing, or a kill cut it off."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _text(path: Path, longest: int) -> str:
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return _cut(file.read(longest + 1), longest)


def _cut(text: str, longest: int) -> str:
    return (
        text if len(text) <= longest else f"{text[:longest]}\n[cut here; the whole file is in the case's folder]"
    )


def _failures(path: Path, failing: Sequence[str]) -> str:
    """The lines of the tests' output that name failing tests, with their surroundings; else its end."""
    if not path.is_file() or not failing:
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = file.read(_LONGEST_LOG).splitlines()
    names = {name.rpartition("::")[2].split(" ")[0] for name in failing}
    hits = [at for at, line in enumerate(lines) if any(name in line for name in names)]
    wanted = sorted({near for at in hits for near in range(max(0, at - 2), min(len(lines), at + 8))})[:_LOG_LINES]
    return "\n".join(line[:500] for line in ([lines[at] for at in wanted] or lines[-_LOG_LINES:]))
