"""Where recordings are, and what they say of the model that a claw was told of: `--record` and `--model replay:`.

A recording is one case's cassette (`gateway.cassette`). A run keeps each in its case's folder; out of a run, as
part of a test's files for instance, they lie in one folder as `<claw>-<instance_id>.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from clawbench.settings import Served
from evaluation.lists import ListedInstance

CASSETTE = "cassette.jsonl"


class RecordingError(ValueError):
    """A recording is not there, or is none; the message says which."""


def cassette(folder: Path, claw: str, listed: ListedInstance) -> Path:
    """Where a case's cassette is; in the folder of a run, if it is not in one of cassettes."""
    alone = folder / f"{claw}-{listed.instance_id}.jsonl"
    return alone if alone.exists() else folder / claw / listed.instance_id / CASSETTE


def require_recordings(folder: Path, cases: Iterable[tuple[str, ListedInstance]]) -> None:
    """See that every case has a recording to be answered from.

    Args:
        folder: of a run, or of cassettes.
        cases: claw and instance of each that is to be run.

    Raises:
        RecordingError: some have none, or one that holds nothing; the message names them.
    """
    missing = []
    for claw, listed in cases:
        try:
            recorded(folder, claw, listed)
        except RecordingError:
            missing.append(f"{claw}-{listed.instance_id}")
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise RecordingError(f"--model replay: {folder} has no recording of {some}; --record makes them")


def recorded(folder: Path, claw: str, listed: ListedInstance) -> Served:
    """The model as a case's recording was made with, read from its first exchange.

    Raises:
        RecordingError: there is no recording, or none that holds an exchange.
    """
    path = cassette(folder, claw, listed)
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(lines.readline())
        return Served(name=first["request"]["model"], apis=(first["api"],), context_window=_window(folder))
    except FileNotFoundError as error:
        raise RecordingError(f"{path} is not there") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{path} is no recording: its first line is no exchange") from error


def _window(folder: Path) -> int | None:
    """The context window that the run's claws were told of; in a folder of cassettes alone nobody says it."""
    try:
        window = json.loads((folder / "manifest.json").read_bytes())["settings"]["served"]["context_window"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return window if isinstance(window, int) else None
