"""The rows of a run: read once, all checked before any money is spent, and written to one file for each case.

The controller copies the selected rows from their sources into a folder of the run, from which each worker
reads the single files that it needs. So the whole run uses one revision of a dataset, and the hub is asked
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from evaluation.instances import Instance, InstanceError, checked, load_instance
from evaluation.lists import DATASETS, ListedInstance
from evaluation.sources import Row, Source, open_source

_SHOWN = 50
"""Faults that a message lists at most."""


@dataclass
class Taken:
    """The rows of one set."""

    source: Source
    instances: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Repository and version of each row, by id."""
    is_older: bool = False
    """Whether the rows have the shape of before swebench 5."""


def read_row(folder: Path, instance_id: str) -> Instance:
    """Read a row that `take_rows` wrote.

    Raises:
        InstanceError: the file is missing or damaged.
    """
    try:
        return Instance.model_validate_json((folder / f"{instance_id}.json").read_bytes())
    except (OSError, ValueError) as error:
        raise InstanceError(f"{instance_id}: its row could not be read: {error}") from error


def take_rows(
    selected: Iterable[ListedInstance],
    *,
    demo: Path,
    into: Path,
    dataset: str | None = None,
    revisions: Mapping[str, str] | None = None,
) -> dict[str, Taken]:
    """Read and check the rows of instances, and write those of the real sets to a folder.

    Args:
        selected: from the instance lists.
        demo: the embedded task repo, whose rows are only checked.
        into: the folder; made if it is missing.
        dataset: the source of the real sets' rows, if not their official datasets; see `open_source`.
        revisions: of datasets on the hub, by set; the default is the head.

    Returns:
        the rows of each real set.

    Raises:
        InstanceError: a source can't be read, or rows are missing, malformed, repeated or contradict the instance
            lists. The message lists all faults.
    """
    by_set: dict[str, dict[str, ListedInstance]] = {}
    for listed in selected:
        by_set.setdefault(listed.set_name, {})[listed.instance_id] = listed
    faults: list[str] = []
    for listed in by_set.pop("demo", {}).values():
        try:
            load_instance(listed, demo=demo)
        except InstanceError as error:
            faults.append(str(error))
    taken: dict[str, Taken] = {}
    into.mkdir(parents=True, exist_ok=True)
    for name, wanted in by_set.items():
        revision = (revisions or {}).get(name)
        try:
            taken[name] = Taken(open_source(dataset or DATASETS[name], revision))
            faults += _take(wanted, taken[name], into)
        except InstanceError as error:
            faults.append(str(error))
    if faults:
        raise InstanceError(_all_of(faults))
    return taken


def _take(wanted: Mapping[str, ListedInstance], taken: Taken, into: Path) -> list[str]:
    """Take the rows of one set; returns their faults."""
    faults: list[str] = []
    places: dict[str, str] = {}
    older: set[bool] = set()
    for row in taken.source.rows(wanted):
        name = row.instance_id
        if isinstance(name, str) and name in places:
            faults.append(f"{row.place}: {name} is already at {places[name]}")
            continue
        if isinstance(name, str):
            places[name] = row.place
        try:
            instance = _checked(row, wanted)
        except InstanceError as error:
            faults.append(str(error))
            continue
        older.add(instance.is_older)
        taken.instances[instance.instance_id] = (instance.repo, instance.version)
        (into / f"{instance.instance_id}.json").write_text(instance.model_dump_json(), encoding="utf-8")
    missing = [name for name in wanted if name not in places]
    if missing:
        faults.append(f"no such row in {taken.source.name}: {', '.join(missing)}")
    if len(older) > 1:
        faults.append(
            f"{taken.source.name} has rows of swebench 5's shape and of the older one, so that two versions of "
            "the harness would judge one set"
        )
    taken.is_older = older == {True}
    return faults


def _checked(row: Row, wanted: Mapping[str, ListedInstance]) -> Instance:
    if row.values is None or row.fault:
        raise InstanceError(f"{row.place}: {row.fault}")
    try:
        instance = checked(row.values, wanted[str(row.instance_id)])
    except InstanceError as error:
        raise InstanceError(f"{row.place}: {error}") from error
    for column, known in _known_to_the_harness().items() if not instance.is_older else ():
        value = getattr(instance, column)
        if value not in known:
            raise InstanceError(
                f"{row.place}: {instance.instance_id}: the installed official harness knows no {column} {value!r}"
            )
    return instance


@cache
def _known_to_the_harness() -> Mapping[str, Collection[str]]:
    """The values of columns by which the harness chooses its own code; it would fail only after the tests."""
    from swebench.harness.constants import EvalType  # noqa: PLC0415 - slow to import
    from swebench.harness.log_parsers import PARSER_REGISTRY  # noqa: PLC0415

    return {"log_parser": PARSER_REGISTRY, "eval_type": [kind.value for kind in EvalType]}


def _all_of(faults: Collection[str]) -> str:
    if len(faults) == 1:
        return next(iter(faults))
    shown = [f"  {fault}" for fault in list(faults)[:_SHOWN]]
    more = [f"  and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
    return "\n".join([f"{len(faults)} faults in the rows; nothing was started:", *shown, *more])
