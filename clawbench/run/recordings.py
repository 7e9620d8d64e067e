"""Recordings of cases (`--record`, `--model replay:`): where they are, and which model they were made with.

A recording is one case's cassette (`gateway.cassette`). A run keeps it in the case's folder. Other folders, such as
test data, have one cassette per case, named `<case id>.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from clawbench.run.settings import Served
from common.errors import LastingError
from records.case_id import CaseId
from records.files import RunError
from records.run_folder import RunDirectory

CASSETTE = "cassette.jsonl"


class RecordingError(LastingError, ValueError):
    """A recording is missing or malformed; the message says which."""


def cassette(folder: Path, case: CaseId) -> Path:
    """The path of a case's cassette, in a folder of cassettes or in a run's folder."""
    alone = folder / f"{case}.jsonl"
    if alone.exists():
        return alone
    return RunDirectory(folder).case(case).path / CASSETTE


def require_recordings(folder: Path, cases: Iterable[CaseId]) -> None:
    """Check that every case has a recording.

    Args:
        folder: of a run, or a folder of cassettes.
        cases: the cases to run.

    Raises:
        RecordingError: some have none, or an empty one; the message names them.
    """
    missing = []
    for case in cases:
        try:
            recorded(folder, case)
        except RecordingError:
            missing.append(str(case))
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise RecordingError(f"--model replay: {folder} has no recording of {some}; --record makes them")


def recorded(folder: Path, case: CaseId) -> Served:
    """The model with which a case was recorded, read from the first exchange.

    Raises:
        RecordingError: there is no recording, or it contains no exchange.
        RunError: the recorded run's manifest can't be read.
    """
    path = cassette(folder, case)
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(lines.readline())
        return Served(name=first["request"]["model"], apis=(first["api"],), context_window=_window(folder))
    except FileNotFoundError as error:
        raise RecordingError(f"{path} does not exist") from error
    except RunError as error:
        raise RecordingError(f"{folder} was recorded by an older clawbench: record it again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{path} is not a recording: its first line is not an exchange") from error


def _window(folder: Path) -> int | None:
    """The context window in the recorded run's manifest; None for a plain folder of cassettes."""
    run = RunDirectory(folder)
    served = run.manifest().settings.served if run.manifest_path.is_file() else None
    return served.context_window if served is not None else None
