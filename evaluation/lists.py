"""Which instances there are: small list files, read at collection in every worker, never a dataset."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
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


class ListError(ValueError):
    """A file of ids can't be taken; the message tells of every line that is wrong."""


@dataclass(frozen=True)
class ListedInstance:
    """What is known of an instance without its row."""

    instance_id: str
    repo: str
    base_commit: str | None
    """None where it is published with the dataset only."""
    base_commit_from: str
    """`published`: by the dataset or with results on it; `derived` or `unverified`: found in the repository's own
    history, and no reason to refuse a row; empty: not known."""
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


@cache
def by_id() -> dict[str, ListedInstance]:
    """All of them by their ids."""
    return {listed.instance_id: listed for listed in listed_instances()}


def read_instances(path: Path) -> frozenset[str]:
    """The ids that a file lists: one a line, `#` begins a comment.

    Raises:
        ListError: it can't be read, is empty, or has ids twice or ids that no list has; all are in the message.
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
            faults.append(f"line {number}: {name} is in line {found[name]} already")
        elif name and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            faults.append(f"line {number}: there is no {name}" + (f"; the nearest is {near[0]}" if near else ""))
        elif name:
            found[name] = number
    if faults or not found:
        raise ListError("\n".join(faults) or "it lists no instance")
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
