"""Which instances there are: small list files, read at collection in every worker, never a dataset."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LISTS = Path(__file__).resolve().parent.parent / "instance_lists"
LANGUAGE_GROUPS = ("c", "go", "java", "javascript", "php", "python", "ruby", "rust")
"""The paper's eight groups; C and C++ are one, so are JavaScript and TypeScript."""

DATASETS = {
    "demo": "demo",
    "verified_mini": "SWE-bench/SWE-bench_Verified",
    "multilingual": "SWE-bench/SWE-bench_Multilingual",
}
"""The sets by marker, with the dataset that their rows come from; `demo` is the embedded task set."""

_FILES = {
    "demo": "demo.tsv",
    "verified_mini": "verified_mini_50.tsv",
    "multilingual": "multilingual_300.tsv",
}


@dataclass(frozen=True)
class ListedInstance:
    """What is known of an instance without its row."""

    instance_id: str
    repo: str
    base_commit: str | None
    """None where it is published with the dataset only."""
    language_group: str
    set_name: str
    lite: bool = False

    @property
    def embedded(self) -> bool:
        """Whether it is one of the embedded task set."""
        return self.set_name == "demo"

    @property
    def markers(self) -> tuple[str, ...]:
        """The pytest markers that select it."""
        whole = () if self.embedded else ("full",)
        return (self.set_name, *whole, *(("lite",) if self.lite else ()), self.language_group)


@cache
def listed_instances() -> tuple[ListedInstance, ...]:
    """All of them: the embedded set first, then by set and id, the same in every process."""
    return tuple(instance for name in DATASETS for instance in _read(name))


def _read(set_name: str) -> Iterator[ListedInstance]:
    with (LISTS / _FILES[set_name]).open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield ListedInstance(
                row["instance_id"],
                row["repo"],
                row["base_commit"] or None,
                row["language_group"],
                set_name,
                row.get("lite") == "lite",
            )
