"""What openclaw says of a run: in what it printed when it ended, and in its transcript, which is there anyway.

The transcript is a table of events in SQLite. openclaw may compress large events; those can't be read here: a
transcript with one of them tells nothing, and what was printed is all there is.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from adapters.base import TokenUsage

DATABASE = "openclaw-agent.sqlite"

_CLASSES = ("input", "cacheRead", "cacheWrite", "output")
"""openclaw's names of the token classes, in the order of `TokenUsage`."""


def usage(session: Path, stdout: bytes) -> TokenUsage | None:
    """The tokens of all replies: as it printed them, else as its transcript has them."""
    counts = _counts(_printed(stdout).get("usage"))
    if counts is None:
        of_replies = [_counts(reply.get("usage")) for reply in _replies(session)]
        known = [reply for reply in of_replies if reply is not None]
        if len(known) < len(of_replies):
            return None
        counts = [sum(column) for column in zip(*known, strict=True)]
    return TokenUsage(*counts) if any(counts) else None


def final_message(session: Path, stdout: bytes) -> str:
    """The last reply's text, if it was the end: as its transcript has it, else as it printed it."""
    replies = _replies(session)
    if not replies:
        text = _printed(stdout).get("final")
        return text if isinstance(text, str) else ""
    content = replies[-1].get("content")
    if replies[-1].get("stopReason") != "stop" or not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _printed(stdout: bytes) -> dict[str, Any]:
    """The object that `agent exec --json` ends with; {} where it was ended before."""
    try:
        said = json.loads(stdout)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _counts(usage: Any) -> list[int] | None:
    """Token counts in the order of the classes; None for what is none."""
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in _CLASSES]
    known = [count for count in counts if isinstance(count, int)]
    return known if len(known) == len(counts) else None


def _replies(session: Path) -> list[dict[str, Any]]:
    """The model's replies in the transcript, in their order; [] where there is none, or not all of it can be read.

    The files are copied first, because SQLite would change them: what openclaw wrote last is in the write-ahead
    log beside the database.
    """
    found = sorted(session.rglob(DATABASE))
    if len(found) != 1:
        return []
    with tempfile.TemporaryDirectory() as folder:
        for path in found[0].parent.glob(f"{DATABASE}*"):
            shutil.copyfile(path, Path(folder, path.name))
        query = "SELECT event_json FROM transcript_events ORDER BY session_id, seq"
        try:
            with closing(sqlite3.connect(Path(folder, DATABASE))) as connection:
                events = [json.loads(event) for (event,) in connection.execute(query)]
        except (sqlite3.Error, ValueError, TypeError, RecursionError):
            return []  # compressed, or something else: the claw can write what it likes here
    messages = [event.get("message") for event in events if isinstance(event, dict)]
    return [message for message in messages if isinstance(message, dict) and message.get("role") == "assistant"]
