"""Which instances there are: small files, read at collection in every worker instead of the datasets."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from common.errors import ClawbenchError

LISTS = Path(__file__).resolve().parent.parent / "instance_lists"
LANGUAGE_GROUPS = ("c", "go", "java", "javascript", "php", "python", "ruby", "rust")
"""The paper's eight groups; C and C++ are one group, and so are JavaScript and TypeScript."""

OTHER_LANGUAGE = "other"
"""The group of an instance of `--dataset` in none of these languages."""
DATASET = "dataset"
"""The set of the instances of `--dataset`, and the set's name of those that no instance list has."""

DATASETS = {
    "demo": "demo",
    "verified_mini": "SWE-bench/SWE-bench_Verified",
    "multilingual": "SWE-bench/SWE-bench_Multilingual",
}
"""The dataset of each set, by the set's marker; `demo` is the embedded task set."""

_FILES = {
    "demo": "demo.tsv",
    "verified_mini": "verified_mini_50.tsv",
    "multilingual": "multilingual_300.tsv",
}


class ListError(ClawbenchError):
    """A file of ids can't be used; the message lists every wrong line."""


@dataclass(frozen=True)
class ListedInstance:
    """What is known about an instance without its row."""

    instance_id: str
    repo: str
    base_commit: str | None
    """None if only the dataset has it."""
    base_commit_from: str
    """`published`: by the dataset or with results on it; `derived` or `unverified`: found in the repository's
    history, so that a row with another commit is accepted; empty: unknown."""
    language_group: str
    set_name: str
    lite: bool = False
    in_dataset: bool = False
    """Whether `--dataset` has it."""

    @property
    def embedded(self) -> bool:
        """Whether it belongs to the embedded task set."""
        return self.set_name == "demo"

    @property
    def markers(self) -> tuple[str, ...]:
        """The pytest markers that select it."""
        of_dataset = (DATASET,) if self.in_dataset else ()
        if self.set_name == DATASET:
            return (*of_dataset, self.language_group)
        whole = () if self.embedded else ("full",)
        return (self.set_name, *whole, *(("lite",) if self.lite else ()), *of_dataset, self.language_group)


_of_dataset: dict[str, ListedInstance] = {}


def know_dataset(instances: Iterable[ListedInstance]) -> None:
    """List the instances of `--dataset` too; those that were listed so before are forgotten."""
    _of_dataset.clear()
    _of_dataset.update((one.instance_id, one) for one in instances)
    listed_instances.cache_clear()
    by_id.cache_clear()


@cache
def listed_instances() -> tuple[ListedInstance, ...]:
    """All instances: the embedded set, then by set and id, then those of `--dataset`; the same in every process."""
    known = [instance for name in DATASETS for instance in _read(name)]
    ids = {instance.instance_id for instance in known}
    more = [one for name, one in _of_dataset.items() if name not in ids]
    return (*(_of_dataset.get(one.instance_id, one) for one in known), *more)


@cache
def by_id() -> dict[str, ListedInstance]:
    """All instances by id."""
    return {listed.instance_id: listed for listed in listed_instances()}


def read_instances(path: Path) -> frozenset[str]:
    """The ids in a file that has one per line; `#` begins a comment.

    Raises:
        ListError: the file can't be read, is empty, or has unknown or repeated ids; the message lists them all.
    """
    try:
        lines = path.expanduser().read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ListError(f"it can't be read: {error}") from error
    known = by_id()
    found: dict[str, int] = {}
    faults = []
    for number, line in enumerate(lines, 1):
        name = line.partition("#")[0].strip()
        if name in found:
            faults.append(f"line {number}: {name} is already in line {found[name]}")
        elif name and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            faults.append(
                f"line {number}: unknown instance {name}" + (f"; did you mean {near[0]}?" if near else "")
            )
        elif name:
            found[name] = number
    if faults or not found:
        raise ListError("\n".join(faults) or "it has no instance")
    return frozenset(found)


def _read(set_name: str) -> Iterator[ListedInstance]:
    with (LISTS / _FILES[set_name]).open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield ListedInstance(
                row["instance_id"],
                row["repo"],
                row["base_commit"] or None,
                row.get("base_commit_from", "published"),
                row["language_group"],
                set_name,
                row.get("lite") == "lite",
            )
