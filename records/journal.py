"""The journal of a run, `state.jsonl`: what happened when, a line of JSON for each event.

Every process of a run appends to it. A line is written in one piece while the file is locked, so lines of several
processes do not mix, and it is on the disk before the writer goes on. A kill of the machine or a full disk may
tear a line; the next one begins on a line of its own, and readers leave the torn one out and say so.

Each line holds the digest of the line before it (`prev`), torn ones included. So a line that was removed, put in
or changed afterwards shows in the next one. Whoever writes the whole rest of the file anew can't be found out in
it: the digest of its last line, noted elsewhere, is what tells that.
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
from typing import Any, NamedTuple

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CHUNK = 4096
"""Bytes that are read at once on the way back to where the last line begins."""


def now() -> str:
    """The time as it is written in records: UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class PlannedCase(NamedTuple):
    """What tells a case from all others of its run."""

    claw: str
    instance_id: str
    sample: int = 1
    """Counted from 1."""


@dataclass(frozen=True)
class Entry:
    """An event."""

    number: int
    """Of its line in the file, from 1."""
    time: str
    event: str
    facts: dict[str, Any]
    """All that the line says."""

    @property
    def case(self) -> PlannedCase | None:
        """The case that it happened to; None for what happened to the run."""
        if "instance_id" not in self.facts:
            return None
        return PlannedCase(self.facts["claw"], self.facts["instance_id"], self.facts.get("sample", 1))


@dataclass
class Reading:
    """What a journal holds."""

    entries: list[Entry] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    """The numbers of the lines that are not whole."""
    unchained: list[int] = field(default_factory=list)
    """The numbers of the lines before which something was changed after it had been written."""
    head: str = ""
    """The digest of the last line; "" where there is none."""

    def of_run(self, *events: str) -> list[Entry]:
        """What happened to the run, of the kinds that are named."""
        return [entry for entry in self.entries if entry.event in events and entry.case is None]

    def has_begun(self, case: PlannedCase, attempt: int) -> bool:
        """Whether the last command began an attempt at a case.

        Args:
            case: which.
            attempt: its number, as the case's folder has it.
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
        """Name a journal's file; nothing is read or made."""
        self.path = path

    def write(self, event: str, **facts: Any) -> None:
        """Append an event; it is on the disk when this returns.

        Args:
            event: its kind.
            facts: whatever goes with it; what happened to a case has its `claw`, `instance_id` and `sample`.

        Raises:
            OSError: it could not be written; nothing of it is left in the file then, unless the machine stops.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            # the kernel lets go of it when the process ends, however it ends
            fcntl.flock(handle, fcntl.LOCK_EX)
            _append(handle, self.path, event, facts)
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.fsync(handle)
        finally:
            os.close(handle)

    def size(self) -> int:
        """How many bytes it has: another number, and something has happened."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> Reading:
        """All that is in it; nothing where there is no file (raises OSError where it can't be read)."""
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
    # a line that was torn stays torn, and alone
    line = b"\n" + line if is_torn else line
    if os.write(handle, line) != len(line):
        os.ftruncate(handle, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _last_line(handle: int, size: int) -> tuple[bytes, bool]:
    """The last line, without its end, and whether it lacks one."""
    tail, start = b"", size
    while start > 0 and b"\n" not in tail.rstrip(b"\n"):
        step = min(_CHUNK, start)
        start -= step
        tail = os.pread(handle, step, start) + tail
    return tail.rstrip(b"\n").rpartition(b"\n")[2], bool(tail) and not tail.endswith(b"\n")


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest() if line else ""


def _entry(number: int, line: bytes) -> Entry | None:
    """A line's event, or None where the line is not whole."""
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
