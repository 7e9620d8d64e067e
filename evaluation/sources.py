"""Where rows come from: files, folders and the hub.

Only the rows that are asked for are kept. A `.jsonl` file is read line by line, and a saved dataset is mapped into
memory; `.json` files (one array of rows) and `.parquet` files are read whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from evaluation.instances import InstanceError, read_task

SPLIT = "test"
"""The split of the official datasets that has the instances."""

_SUFFIXES = (".parquet", ".jsonl", ".json")


@dataclass(frozen=True)
class Row:
    """A row as it was found."""

    place: str
    """For messages, such as `rows.jsonl, line 3`."""
    values: Mapping[str, Any] | None
    """None if this is no row at all."""
    fault: str = ""
    """What is wrong with it; empty if nothing is."""

    @property
    def instance_id(self) -> object:
        """The id in the row, whatever its type."""
        return self.values.get("instance_id") if self.values is not None else None


@dataclass(frozen=True)
class Source:
    """A source of rows, at a fixed revision."""

    name: str
    """As the user gave it."""
    path: Path
    """The file or folder that has the rows."""
    revision: str | None = None
    """The commit of a dataset on the hub; else None."""

    def rows(self, wanted: Collection[str] | None) -> Iterator[Row]:
        """The rows of the wanted ids, and everything that is no row or has no id.

        Args:
            wanted: the ids; None means all rows.

        Raises:
            InstanceError: the source can't be read.
        """
        try:
            yield from _rows(self.path, None if wanted is None else frozenset(wanted))
        except (OSError, ValueError) as error:
            raise InstanceError(f"{self.name} can't be read as rows: {error}") from error


def open_source(name: str, revision: str | None = None) -> Source:
    """Open a source of rows.

    Args:
        name: a `.json`, `.jsonl` or `.parquet` file; a folder (a dataset saved by `datasets`, a task repo of
            swebench 5, or one with a file of the split `test`); otherwise a dataset on the hub.
        revision: of a dataset on the hub: a commit, branch or tag; None is its head. It is resolved to a commit
            here,
            once.

    Raises:
        InstanceError: there is no such source, or the hub does not answer and the local cache does not have it.
    """
    path = Path(name).expanduser()
    if path.exists():
        if revision is not None:
            raise InstanceError(f"{name} is on this machine and has no revisions: omit --dataset-revision")
        return Source(name, path)
    if path.is_absolute() or path.suffix in _SUFFIXES or not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise InstanceError(
            f"{name}: there is no such file or folder, and it can't be the name of a dataset on the hub"
        )
    return _from_hub(name, revision)


def digest(name: str) -> str | None:
    """The digest of a file or of all files in a folder; None if the name is no path on this machine."""
    if not name:
        return None
    path = Path(name).expanduser()
    if path.is_file():
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    if not path.is_dir():
        return None
    whole = sha256()
    for file_path in sorted(found for found in path.rglob("*") if found.is_file()):
        if ".git" in file_path.relative_to(path).parts:
            continue
        with file_path.open("rb") as file:
            whole.update(f"{file_path.relative_to(path)}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _from_hub(name: str, revision: str | None) -> Source:
    # takes seconds to import, so only who asks the hub pays for it
    from huggingface_hub import snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    patterns = [f"*{SPLIT}{rest}{suffix}" for rest in ("", "-*") for suffix in _SUFFIXES]
    try:
        folder = Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=patterns))
    except (OSError, ValueError, HfHubHTTPError) as error:
        at = f" at {revision}" if revision else ""
        why = str(error).strip().partition("\n")[0]
        raise InstanceError(
            f"the rows of {name}{at} could not be fetched from the hub ({type(error).__name__}: {why}). Without "
            "access to it, use --dataset with a .json, .jsonl or .parquet file, a saved dataset's folder or a "
            "task repo."
        ) from error
    return Source(name, folder, folder.name)


def _rows(path: Path, wanted: frozenset[str] | None) -> Iterator[Row]:
    if path.is_file():
        yield from _rows_of_file(path, wanted)
    elif (path / "tasks").is_dir():
        yield from _task_repo(path / "tasks", wanted)
    elif any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        yield from _saved_dataset(path, wanted)
    elif (path / SPLIT / "state.json").is_file():
        yield from _saved_dataset(path / SPLIT, wanted)
    else:
        files = [
            found
            for found in sorted(path.rglob("*"))
            if found.suffix in _SUFFIXES and re.fullmatch(rf"{SPLIT}(-.*)?", found.stem)
        ]
        if not files:
            raise ValueError(
                f"it is neither a saved dataset nor a task repo, and has no file of the split {SPLIT}"
            )
        for file in files:
            yield from _rows_of_file(file, wanted)


def _rows_of_file(path: Path, wanted: frozenset[str] | None) -> Iterator[Row]:
    if path.suffix == ".jsonl":
        found = _json_lines(path)
    elif path.suffix == ".json":
        found = _json_array(path)
    elif path.suffix == ".parquet":
        found = _parquet(path)
    else:
        raise ValueError(f"a file of rows must end in one of {', '.join(_SUFFIXES)}")
    for row in found:
        # a row without an id may be the one that is missing, so it is reported
        if wanted is None or not isinstance(row.instance_id, str) or row.instance_id in wanted:
            yield row


def _json_lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _row(f"{path.name}, line {number}", line)


def _row(place: str, text: bytes) -> Row:
    try:
        value = json.loads(text)
    except ValueError as error:
        return Row(place, None, f"bad JSON: {error}")
    return _as_row(place, value)


def _as_row(place: str, value: object) -> Row:
    if not isinstance(value, dict):
        return Row(place, None, f"a row must be a mapping, this is a {type(value).__name__}")
    if not isinstance(value.get("instance_id"), str):
        return Row(place, value, "it has no instance_id")
    return Row(place, value)


def _json_array(path: Path) -> Iterator[Row]:
    try:
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise ValueError(
                "it holds more than one JSON value: a file of JSON lines must end in .jsonl"
            ) from error
        raise
    if not isinstance(values, list):
        raise ValueError("a .json file of rows must hold one array of them")
    for number, value in enumerate(values, 1):
        yield _as_row(f"{path.name}, element {number}", value)


def _parquet(path: Path) -> Iterator[Row]:
    from pyarrow import ArrowException  # noqa: PLC0415 - slow, and most runs need none
    from pyarrow.parquet import read_table  # noqa: PLC0415

    try:
        table = read_table(path, partitioning=None)
    except ArrowException as error:
        raise ValueError(f"{path.name}: {error}") from error
    if "instance_id" not in table.column_names:
        raise ValueError(f"{path.name} has no column instance_id")
    for number, value in enumerate(table.to_pylist(), 1):
        yield _as_row(f"{path.name}, row {number}", value)


def _saved_dataset(path: Path, wanted: frozenset[str] | None) -> Iterator[Row]:
    from datasets import DatasetDict, load_from_disk  # noqa: PLC0415 - takes seconds

    saved = load_from_disk(str(path))
    if isinstance(saved, DatasetDict):
        if SPLIT not in saved:
            raise ValueError(f"it has no split {SPLIT}, only {', '.join(map(str, saved))}")
        saved = saved[SPLIT]
    if "instance_id" not in saved.column_names:
        raise ValueError("it has no column instance_id")
    for number, name in enumerate(saved["instance_id"]):
        if wanted is None or not isinstance(name, str) or name in wanted:
            yield _as_row(f"{path.name}, row {number + 1}", saved[number])


def _task_repo(tasks: Path, wanted: frozenset[str] | None) -> Iterator[Row]:
    for name in sorted(wanted) if wanted is not None else sorted(found.name for found in tasks.iterdir()):
        if (tasks / name).is_dir():
            place = f"tasks/{name}"
            try:
                row = read_task(tasks / name)
            except InstanceError as error:
                yield Row(place, {"instance_id": name}, str(error))
                continue
            said = row.get("instance_id")
            fault = "" if said == name else f"its instance_id is {said!r}"
            yield Row(place, {**row, "instance_id": name}, fault)
