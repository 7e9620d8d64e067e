"""Predictions that another tool made: read from the files that such tools write, and checked before anything starts.

Read are JSON lines (the official harness, SWE-agent's `.jsonl`), a JSON list, a JSON object by instance id
(mini-swe-agent's and sb-cli's `preds.json`), and a folder with one of these, such as a submission in the SWE-bench
experiments repository. Keys other than those of the official harness are ignored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any

from common.errors import ClawbenchError

NAMES = ("all_preds.jsonl", "preds.json", "predictions.jsonl", "all_preds.json", "predictions.json")
"""The files of predictions in a folder; the first that exists is read."""
_SHOWN = 20
"""Faults that a message lists at most."""


class PredictionsError(ClawbenchError):
    """Predictions can't be used; the message lists the faults."""


@dataclass(frozen=True)
class Predictions:
    """All predictions of one file."""

    path: Path
    sha256: str
    """Of the file."""
    model_name: str
    """`model_name_or_path`, which is the same in all; "" if none has it."""
    patches: Mapping[str, str]
    """By instance id; "" for an empty patch."""


@dataclass(frozen=True)
class _Found:
    place: str
    values: Mapping[str, Any]


def read_predictions(path: Path, known: Collection[str]) -> Predictions:
    """Read and check predictions.

    Args:
        path: a file, or a folder with one.
        known: the ids of all instances.

    Raises:
        PredictionsError: they can't be read, have no entry, or some are malformed, repeated or of unknown instances.
    """
    file = _file_of(path.expanduser())
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PredictionsError(f"{file} can't be read: {error}") from error
    entries = list(_entries(file, text))
    faults: list[str] = []
    places: dict[str, str] = {}
    patches: dict[str, str] = {}
    names: dict[str, str] = {}
    for entry in entries:
        fault = _fault_of(entry, places, known)
        if fault:
            faults.append(f"{entry.place}: {fault}")
            continue
        instance_id = entry.values["instance_id"]
        places[instance_id] = entry.place
        patches[instance_id] = entry.values["model_patch"] or ""
        names.setdefault(str(entry.values.get("model_name_or_path") or ""), entry.place)
    if len(names) > 1:
        told = ", ".join(f"{name or 'no name'} ({place})" for name, place in names.items())
        faults.append(f"predictions of several models: {told}; give one file for each")
    if not entries:
        faults.append("it has no prediction")
    if faults:
        raise PredictionsError(_all_of(file, faults))
    return Predictions(file, sha256(data).hexdigest(), next(iter(names)), patches)


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = next((path / name for name in NAMES if (path / name).is_file()), None)
    if found is None:
        raise PredictionsError(f"{path} has no file of predictions: expected one of {', '.join(NAMES)}")
    return found


def _entries(file: Path, text: str) -> Iterator[_Found]:
    """The entries of a file, whatever its name ends in."""
    try:
        whole = json.loads(text, object_pairs_hook=_Pairs)
    except RecursionError as error:
        raise PredictionsError(f"{file}: it is nested too deep") from error
    except ValueError:
        yield from _json_lines(file, text)
        return
    if isinstance(whole, list) and not isinstance(whole, _Pairs):
        for number, value in enumerate(whole, 1):
            yield _entry(file, f"element {number}", value)
    elif isinstance(whole, _Pairs) and whole.as_dict().keys() & {"instance_id", "model_patch"}:
        yield _entry(file, "line 1", whole)
    elif isinstance(whole, _Pairs):
        for number, (name, value) in enumerate(whole, 1):
            place = f"entry {number} ({name})"
            found = _Pairs([("model_patch", value)]) if value is None or isinstance(value, str) else value
            entry = _entry(file, place, found)
            told = entry.values.get("instance_id", name)
            if told != name:
                raise PredictionsError(f"{file}, {place}: its instance_id is {told!r}")
            yield _Found(place, {**entry.values, "instance_id": name})
    else:
        raise PredictionsError(f"{file}: expected JSON lines, a list, or an object by instance id")


def _json_lines(file: Path, text: str) -> Iterator[_Found]:
    # not splitlines: a patch may have other characters that it takes for line ends
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = json.loads(line, object_pairs_hook=_Pairs)
            except (ValueError, RecursionError) as error:
                raise PredictionsError(f"{file}, line {number}: it is no JSON: {error}") from error
            yield _entry(file, f"line {number}", value)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys, of which `dict` would keep the last without a word."""

    def as_dict(self) -> dict[str, Any]:
        return dict(self)


def _entry(file: Path, place: str, value: object) -> _Found:
    if not isinstance(value, _Pairs):
        raise PredictionsError(
            f"{file}, {place}: a prediction must be an object, this is a {type(value).__name__}"
        )
    repeated = [name for name, count in Counter(name for name, _ in value).items() if count > 1]
    if repeated:
        raise PredictionsError(f"{file}, {place}: it has {', '.join(repeated)} more than once")
    return _Found(place, value.as_dict())


def _fault_of(entry: _Found, places: Mapping[str, str], known: Collection[str]) -> str:
    """What is wrong with an entry; "" if nothing is."""
    name, patch = entry.values.get("instance_id"), entry.values.get("model_patch")
    if not isinstance(name, str):
        return f"it has no instance_id, only {_keys(entry)}"
    if "model_patch" not in entry.values:
        return f"{name} has no model_patch, only {_keys(entry)}"
    is_text = patch is None or (isinstance(patch, str) and not re.search("[\ud800-\udfff]", patch))
    if not is_text:
        what = "text with half of a surrogate pair" if isinstance(patch, str) else _kind(patch)
        return f"the model_patch of {name} is {what}, not text"
    if name in places:
        return f"{name} is already in {places[name]}"
    if name not in known:
        near = _nearest(name, known)
        return f"unknown instance {name}" + (f"; did you mean {near}?" if near else "")
    return ""


def _kind(value: object) -> str:
    return "an object" if isinstance(value, _Pairs) else f"a {type(value).__name__}"


def _nearest(name: str, known: Collection[str]) -> str | None:
    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def _keys(entry: _Found) -> str:
    return ", ".join(sorted(map(str, entry.values))) or "nothing"


def _all_of(file: Path, faults: Sequence[str]) -> str:
    if len(faults) == 1:
        return f"{file}: {faults[0]}"
    more = [f"  and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
    return "\n".join(
        [f"{file}: {len(faults)} faults; nothing was started:", *(f"  {one}" for one in faults[:_SHOWN]), *more]
    )
