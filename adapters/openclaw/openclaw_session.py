"""What openclaw reports about a run: in what it printed at its end, and in its transcript.

The transcript is a table of events in SQLite, and exists even if openclaw was killed. openclaw may compress large
events, which can't be read here; then only the printed report is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adapters.base import TokenUsage
from adapters.built_in_adapter import query_database

DATABASE = "openclaw-agent.sqlite"

_CLASSES = ("input", "cacheRead", "cacheWrite", "output")
"""openclaw's names for the token classes, in the order of `TokenUsage`."""


def usage(session: Path, stdout: bytes) -> TokenUsage | None:
    """The tokens of all replies: as it printed them, else from its transcript."""
    counts = _counts(_printed(stdout).get("usage"))
    if counts is None:
        of_replies = [_counts(reply.get("usage")) for reply in _replies(session)]
        known = [reply for reply in of_replies if reply is not None]
        if len(known) < len(of_replies):
            return None
        counts = [sum(column) for column in zip(*known, strict=True)]
    return TokenUsage(*counts) if any(counts) else None


def final_message(session: Path, stdout: bytes) -> str:
    """The last reply's text if it ended the run: from the transcript, else as it was printed."""
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
    """The object that `agent exec --json` ends with; {} if it was killed before."""
    try:
        said = json.loads(stdout)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _counts(usage: Any) -> list[int] | None:
    """Token counts in the order of the classes; None if any is missing."""
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in _CLASSES]
    known = [count for count in counts if isinstance(count, int)]
    return known if len(known) == len(counts) else None


def _replies(session: Path) -> list[dict[str, Any]]:
    """The model's replies in the transcript, in order; [] if there is none or part of it can't be read."""
    query = "SELECT event_json FROM transcript_events ORDER BY session_id, seq"
    try:
        events = [json.loads(event) for (event,) in query_database(session, DATABASE, query)]
    except (ValueError, TypeError, RecursionError):
        return []  # compressed, or whatever the claw wrote there
    messages = [event.get("message") for event in events if isinstance(event, dict)]
    return [message for message in messages if isinstance(message, dict) and message.get("role") == "assistant"]
