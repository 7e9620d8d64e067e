"""The instances of `--dataset`, as the instance lists would have them: read once, and kept in one small file.

The controller reads the source. It and the workers then list the instances from the file, so that a dataset of
thousands of rows costs a worker nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from evaluation.instances import InstanceError
from evaluation.lists import DATASET, OTHER_LANGUAGE, ListedInstance, by_id
from evaluation.sources import Row, Source, open_source

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Ids name folders, containers and tests."""
_LIKE_A_SAMPLE = re.compile(r".+-s\d+")
_CHANGED_FILE = re.compile(r"^\+\+\+ b/.*\.(\w+)$", re.MULTILINE)
_LANGUAGES = {
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hpp", "hh"), "c"),
    **dict.fromkeys(("js", "jsx", "ts", "tsx", "mjs", "cjs", "vue", "svelte"), "javascript"),
    "go": "go",
    "java": "java",
    "php": "php",
    "py": "python",
    "rb": "ruby",
    "rs": "rust",
}
_SHOWN = 20


def index_of(dataset: str, revision: str | None, cache: Path) -> Path:
    """The file that lists a dataset's instances; made if the source has changed since.

    Args:
        dataset: as `open_source` takes it.
        revision: of a dataset on the hub; None is its head.
        cache: the folder of such files.

    Raises:
        InstanceError: the source can't be read, or ids can't be used; the message lists every fault.
    """
    source = open_source(dataset, revision)
    path = cache / f"{_key(source)}.json"
    if not path.exists():
        listed = _listed(source)
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text(json.dumps([asdict(one) for one in listed]), encoding="utf-8")
        partial.replace(path)
    return path


def read_index(path: Path) -> list[ListedInstance]:
    """The instances that `index_of` listed (raises OSError)."""
    return [ListedInstance(**row) for row in json.loads(path.read_bytes())]


def _key(source: Source) -> str:
    """What identifies the source's content: the commit, else sizes and times of its files."""
    path = source.path.resolve()
    files = sorted(found for found in path.rglob("*") if found.is_file()) if path.is_dir() else [path]
    stats = [(str(file), (told := file.stat()).st_size, told.st_mtime_ns) for file in files]
    known = sorted((name, one.set_name) for name, one in by_id().items())
    return sha256(json.dumps([source.name, source.revision, stats, known]).encode()).hexdigest()[:32]


def _listed(source: Source) -> list[ListedInstance]:
    found: dict[str, tuple[str, ListedInstance]] = {}
    lower: dict[str, str] = {}
    faults: list[str] = []
    for row in source.rows(None):
        name = row.instance_id
        if row.values is None or not isinstance(name, str):
            faults.append(f"{row.place}: {row.fault}")
        elif not _ID.fullmatch(name) or _LIKE_A_SAMPLE.fullmatch(name):
            faults.append(
                f"{row.place}: {name!r} can't be an instance id: use letters, digits, '.', '_' and '-', and no end like "
                "'-s2', which names samples"
            )
        elif name.lower() in lower:
            faults.append(f"{row.place}: {name} is already at {lower[name.lower()]}")
        else:
            lower[name.lower()] = row.place
            found[name] = row.place, _as_listed(name, row)
    if faults or not found:
        more = [f"  and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        told = "\n".join([*(f"  {fault}" for fault in faults[:_SHOWN]), *more]) or "  it has no row"
        raise InstanceError(f"{source.name} can't be used:\n{told}")
    return [listed for _, listed in found.values()]


def _as_listed(name: str, row: Row) -> ListedInstance:
    values = row.values or {}
    known = by_id().get(name)
    if known is not None:
        return ListedInstance(**{**asdict(known), "in_dataset": True})
    return ListedInstance(
        instance_id=name,
        repo=str(values.get("repo", "")),
        base_commit=None,
        base_commit_from="",
        language_group=_language(str(values.get("patch") or "")),
        set_name=DATASET,
        in_dataset=True,
    )


def _language(patch: str) -> str:
    """The group of most of the files that the gold patch changes."""
    groups = Counter(_LANGUAGES.get(suffix.lower(), OTHER_LANGUAGE) for suffix in _CHANGED_FILE.findall(patch))
    return groups.most_common(1)[0][0] if groups else OTHER_LANGUAGE
