"""The journal of a run, `state.jsonl`: what happened when, one line of JSON for each event.

Every process of a run appends to it. A line is written in one piece while the file is locked, so that lines of
several processes do not mix, and it is on disk before the writer continues. A crash of the machine or a full disk
may leave a torn line; the next event starts on a new line, and readers skip the torn one and report it.

Each line holds the digest of the line before it (`prev`), torn or not. So a line that was removed, inserted or
changed later is found by the next one. The file alone can't show that all of its end was rewritten: for that, note
the digest of its last line elsewhere.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from records.case_id import CaseId

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CHUNK = 4096
"""Bytes to read at once when searching backwards for the start of the last line."""


def now() -> str:
    """The current time in the format of records: UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True)
class Entry:
    """An event."""

    number: int
    """The number of its line, counted from 1."""
    time: str
    event: str
    facts: dict[str, Any]
    """All keys of the line."""

    @property
    def case(self) -> CaseId | None:
        """The case that it happened to; None for an event of the run."""
        if "instance_id" not in self.facts:
            return None
        return CaseId(self.facts["claw"], self.facts["instance_id"], self.facts.get("sample", 1))


@dataclass
class Reading:
    """The content of a journal."""

    entries: list[Entry] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    """The numbers of the incomplete lines."""
    unchained: list[int] = field(default_factory=list)
    """The numbers of the lines whose `prev` does not fit: something before them was changed."""
    head: str = ""
    """The digest of the last line; "" if there is none."""

    def of_run(self, *events: str) -> list[Entry]:
        """The events of these kinds that belong to the run itself, not to a case."""
        return [entry for entry in self.entries if entry.event in events and entry.case is None]

    def has_begun(self, case: CaseId, attempt: int) -> bool:
        """Whether the last command began this attempt at a case.

        Args:
            case: the case.
            attempt: the attempt's number, as in the case's folder.
        """
        for entry in reversed(self.entries):
            if entry.event == "started":
                return False
            if entry.event == "begun" and entry.case == case and entry.facts.get("attempt") == attempt:
                return True
        return False


class Journal:
    """`<run>/state.jsonl`."""

    def __init__(self, path: Path) -> None:
        """Read and write nothing yet."""
        self.path = path

    def write(self, event: str, **facts: Any) -> None:
        """Append an event; it is on the disk when this returns.

        Args:
            event: the kind of event.
            facts: further keys; events of a case have its `claw`, `instance_id` and `sample`.

        Raises:
            OSError: it could not be written. The file is unchanged, unless the machine crashed.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            # the kernel releases the lock however the process ends
            fcntl.flock(handle, fcntl.LOCK_EX)
            _append(handle, self.path, event, facts)
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.fsync(handle)
        finally:
            os.close(handle)

    def size(self) -> int:
        """The size in bytes, which changes with every event."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> Reading:
        """The whole journal; empty if there is no file (raises OSError)."""
        reading, previous = Reading(), b""
        for number, line in self._lines():
            entry = _entry(number, line)
            if entry is None:
                reading.torn.append(number)
            else:
                reading.entries.append(entry)
                if entry.facts.get("prev") != _digest(previous):
                    reading.unchained.append(number)
            previous = line
        reading.head = _digest(previous)
        return reading

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if bare := line.removesuffix(b"\n"):
                        yield number, bare
        except FileNotFoundError:
            return


def _append(handle: int, path: Path, event: str, facts: dict[str, Any]) -> None:
    size = os.lseek(handle, 0, os.SEEK_END)
    last, is_torn = _last_line(handle, size)
    row = {"time": now(), "event": event, **facts, "prev": _digest(last)}
    line = (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    # a torn line stays on a line of its own
    line = b"\n" + line if is_torn else line
    if os.write(handle, line) != len(line):
        os.ftruncate(handle, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _last_line(handle: int, size: int) -> tuple[bytes, bool]:
    """The last line without its line end, and whether the line end is missing."""
    tail, start = b"", size
    while start > 0 and b"\n" not in tail.rstrip(b"\n"):
        step = min(_CHUNK, start)
        start -= step
        tail = os.pread(handle, step, start) + tail
    return tail.rstrip(b"\n").rpartition(b"\n")[2], bool(tail) and not tail.endswith(b"\n")


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest() if line else ""


def _entry(number: int, line: bytes) -> Entry | None:
    """The event of a line; None if the line is incomplete."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not isinstance(row.get("event"), str):
        return None
    if not isinstance(row.get("time"), str) or _TIME.fullmatch(row["time"]) is None:
        return None
    if "instance_id" in row:
        case = row.get("claw"), row["instance_id"], row.get("sample", 1)
        if [type(part) for part in case] != [str, str, int]:
            return None
    return Entry(number, row["time"], row["event"], row)
