"""Where recordings are, and what they say of the model that a claw was told of: `--record` and `--model replay:`.

A recording is one case's cassette (`gateway.cassette`). A run keeps each in its case's folder; out of a run, as
part of a test's files for instance, they lie in one folder as `<case id>.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from clawbench.names import CaseName
from clawbench.settings import Served
from records.run import RunDirectory

CASSETTE = "cassette.jsonl"


class RecordingError(ValueError):
    """A recording is not there, or is none; the message says which."""


def cassette(folder: Path, case: CaseName) -> Path:
    """Where a case's cassette is; in the folder of a run, if it is not in one of cassettes."""
    alone = folder / f"{case.case_id}.jsonl"
    if alone.exists():
        return alone
    return RunDirectory(folder).case(case.claw, case.listed.instance_id, case.sample).path / CASSETTE


def require_recordings(folder: Path, cases: Iterable[CaseName]) -> None:
    """See that every case has a recording to be answered from.

    Args:
        folder: of a run, or of cassettes.
        cases: those that are to be run.

    Raises:
        RecordingError: some have none, or one that holds nothing; the message names them.
    """
    missing = []
    for case in cases:
        try:
            recorded(folder, case)
        except RecordingError:
            missing.append(case.case_id)
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise RecordingError(f"--model replay: {folder} has no recording of {some}; --record makes them")


def recorded(folder: Path, case: CaseName) -> Served:
    """The model as a case's recording was made with, read from its first exchange.

    Raises:
        RecordingError: there is no recording, or none that holds an exchange.
    """
    path = cassette(folder, case)
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
