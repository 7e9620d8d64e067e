"""How a claw came to its patch, in one readable file: the prompt, the requests, the output and the session.

The experiments repository accepts reasoning traces in any form, with one file for each instance. Claws keep their
sessions in many forms, so the file quotes whatever exists: texts as they are, SQLite databases as SQL.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from records.case_folder import SESSION, CaseFolder
from records.models import CaseRecord

LONGEST = 1_000_000
"""The most characters of one file; longer files are cut, which is noted."""
_SIDES = ("-wal", "-shm", "-journal")
"""The files that SQLite keeps next to a database; they are read with it."""
_AGENT_FILES = "agent_files"
"""The part of the session's folder that the claw left in the repository, which is not shown."""


def trajectory(case: CaseFolder, record: CaseRecord) -> str:
    """A case's trajectory as Markdown.

    Args:
        case: the case's folder.
        record: the case's record.

    Raises:
        OSError: a file can't be read.
    """
    parts = [f"# {case.id.instance_id}\n", _head(record)]
    parts += _quoted("Prompt", case.path / "prompt.txt")
    parts += _quoted("Requests to the model", case.requests)
    parts += _quoted("Final message", case.path / "final_message.txt")
    parts += _quoted("Standard output", case.path / "agent_stdout.log")
    parts += _quoted("Standard error", case.path / "agent_stderr.log")
    for name, path in _session_files(case.path / SESSION):
        parts += _quoted(f"Session: `{name}`", path)
    return "\n".join(parts)


def session_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The names and texts of a session's files; files that are not text are left out (raises OSError)."""
    for name, path in _session_files(folder):
        if path.stat().st_size and not path.name.endswith(_SIDES) and (text := _readable(path)) is not None:
            yield name, text


def _session_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files that the claw itself left in its session, by name."""
    session = folder.resolve()
    for path in sorted(found for found in session.rglob("*") if found.is_file()):
        name = path.relative_to(session)
        # a link made by the claw may lead out of its session
        if name.parts[0] != _AGENT_FILES and path.resolve() == path:
            yield str(name), path


def _head(record: CaseRecord) -> str:
    tokens = record.tokens.model_dump() if record.tokens is not None else {}
    rows = {
        "model": record.model_name_or_path,
        "ended": f"{record.ending} {record.detail}".strip(),
        "seconds": record.seconds.get("agent", "-"),
        "turns": record.turns,
        "tokens": ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in tokens.items()) or "-",
    }
    return "".join(f"- {name}: {value}\n" for name, value in rows.items())


def _quoted(title: str, path: Path) -> Iterator[str]:
    """A file under a heading, with a fence that nothing in it can end; nothing if the file is missing or empty."""
    if not path.is_file() or not path.stat().st_size or path.name.endswith(_SIDES):
        return
    yield f"## {title}\n"
    text = _readable(path)
    if text is None:
        yield f"Not a text file: {path.stat().st_size:,} bytes.\n"
        return
    if len(text) > LONGEST:
        yield f"The first {LONGEST:,} characters of {path.stat().st_size:,} bytes:\n"
        text = text[:LONGEST]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield f"{fence}\n{text.rstrip()}\n{fence}\n"


def _readable(path: Path) -> str | None:
    """A file's text or a database's statements, cut just above the limit; None for other files."""
    with path.open("rb") as file:
        is_database = file.read(16) == b"SQLite format 3\0"
    if is_database:
        return _database(path)
    try:
        with path.open(encoding="utf-8", newline="") as text:
            return text.read(LONGEST + 1)
    except UnicodeDecodeError:
        return None


def _database(path: Path) -> str | None:
    """The statements that create a database, read from a copy, as SQLite may change the files that it opens."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for file in (path, *(path.with_name(path.name + side) for side in _SIDES)):
            if file.is_file():
                shutil.copyfile(file, copy.with_name(file.name))
        try:
            with closing(sqlite3.connect(copy)) as connection:
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                lines, length = [], 0
                for line in connection.iterdump():
                    lines.append(line)
                    length += len(line) + 1
                    if length > LONGEST + 1:
                        break
                return "\n".join(lines)
        except sqlite3.Error:
            return None
