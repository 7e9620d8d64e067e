"""The published results of Claw-SWE-Bench (arXiv:2606.12344), as reference rows; never mixed with measured ones."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reports.samples import Results, pass_at_1, wilson

_FILE = Path(__file__).with_name("published.tsv")


@dataclass(frozen=True)
class Published:
    """A row of the paper: a claw with a model on the full set."""

    version: int
    """Of the paper. Its second version (2026-09-28) measured anew, with three runs of each cell."""
    claw: str
    """The claw's name in this suite, or the paper's name of one that it does not have."""
    model: str
    pass_at_1: float
    """A share; in the second version, the mean of its runs."""
    instances: int
    runs: int
    dollars: float | None
    """For all instances, once."""
    seconds: float | None
    """For each instance, on average."""

    def is_of(self, model: str) -> bool:
        """Whether a model, named as in `--model`, is this row's: compared by letters and digits of its last part."""
        return _plain(model.rpartition("/")[2]) == _plain(self.model)


def published_rows() -> Iterator[Published]:
    """All published rows, those of the second version first."""
    with _FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield Published(
                version=int(row["version"]),
                claw=row["claw"],
                model=row["model"],
                pass_at_1=float(row["pass_at_1"]) / 100,
                instances=int(row["instances"]),
                runs=int(row["runs"]),
                dollars=float(row["dollars"]) if row["dollars"] else None,
                seconds=float(row["seconds"]) if row["seconds"] else None,
            )


@dataclass(frozen=True)
class Distance:
    """How far measured results are from a published row."""

    published: Published
    measured: float
    difference: float
    low: float
    high: float
    """The 95% interval of the difference (Newcombe's for two independent shares)."""
    instances: int
    """How many instances were measured; the distance means little if they are not the full set."""


def distances(claw: str, model: str, results: Results) -> Iterator[Distance]:
    """The distance to each published row of the same claw and model.

    Args:
        claw: its name.
        model: as in `--model`.
        results: by instance, whether each sample that counts was resolved.
    """
    rate = pass_at_1(results)
    if rate is None:
        return
    for row in published_rows():
        if row.claw != claw or not row.is_of(model):
            continue
        # three runs of an instance are a cluster of unknown agreement: they count as one
        low, high = wilson(row.pass_at_1, row.instances)
        difference = rate.value - row.pass_at_1
        below = ((rate.value - rate.low) ** 2 + (high - row.pass_at_1) ** 2) ** 0.5
        above = ((rate.high - rate.value) ** 2 + (row.pass_at_1 - low) ** 2) ** 0.5
        yield Distance(row, rate.value, difference, difference - below, difference + above, rate.instances)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
