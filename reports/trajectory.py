"""How a claw came to its patch, in one readable file: what it was told, what it asked, and all that it left of it.

The experiments repository takes reasoning traces in any form, one file an instance with the id in its name. Claws
keep their sessions in many forms, so the file quotes what there is: texts as they are, SQLite databases as SQL.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from records.case import CaseFolder

LONGEST = 1_000_000
"""Characters of one of a claw's files; what is longer is cut, and says so."""
_SIDES = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database: part of it, and nothing by itself."""
_NOT_THE_CLAWS = "droppings"
"""In the session's folder: what the claw left in the repository, which is no talk."""
_FACTS = ("time", "status", "ending", "finish_reason", "latency")


def trajectory(case: CaseFolder, metadata: dict[str, Any]) -> str:
    """A case's trajectory, as Markdown.

    Args:
        case: its folder.
        metadata: its outcome and all that goes with it.

    Raises:
        OSError: a file can't be read.
    """
    parts = [f"# {case.instance_id}\n", _head(metadata)]
    parts += _quoted("What the claw was told", case.path / "prompt.txt")
    parts += ["## What it asked the model\n", _requests(case.requests)]
    parts += _quoted("Its final message", case.path / "final_message.txt")
    parts += _quoted("What it printed", case.path / "agent_stdout.log")
    parts += _quoted("What it printed as errors", case.path / "agent_stderr.log")
    session = (case.path / "session").resolve()
    for path in sorted(found for found in session.rglob("*") if found.is_file()):
        name = path.relative_to(session)
        # a link that the claw made leads to what is not its session
        if name.parts[0] != _NOT_THE_CLAWS and path.resolve() == path:
            parts += _quoted(f"Its session: `{name}`", path)
    return "\n".join(parts)


def _head(metadata: dict[str, Any]) -> str:
    tokens = metadata.get("tokens") or {}
    rows = {
        "model": metadata["model_name_or_path"],
        "ended": " ".join(str(metadata.get(name) or "") for name in ("ending", "detail")).strip(),
        "seconds": metadata["seconds"].get("agent", "-"),
        "turns": metadata.get("turns", "-"),
        "tokens": ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in tokens.items()) or "-",
    }
    return "".join(f"- {name}: {value}\n" for name, value in rows.items())


def _requests(log: Path) -> str:
    """The facts of each request as a table; a line that a kill has torn is left out."""
    rows = []
    for line in log.read_text("utf-8", "replace").splitlines() if log.is_file() else []:
        try:
            request = json.loads(line)
        except ValueError:
            continue
        tokens = ", ".join(f"{value} {name}" for name, value in (request.get("tokens") or {}).items())
        rows.append([*(_cell(request.get(name)) for name in _FACTS), tokens or "-"])
    if not rows:
        return "Nothing is known of it.\n"
    lines = [["#", *_FACTS, "tokens"], ["---"] * (len(_FACTS) + 2)]
    lines += [[str(number), *cells] for number, cells in enumerate(rows, 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(value: object) -> str:
    return "-" if value is None else str(value).replace("|", "\\|")


def _quoted(title: str, path: Path) -> Iterator[str]:
    """A file under a heading, fenced so that nothing in it ends the fence; nothing where nothing is to be read."""
    if not path.is_file() or not path.stat().st_size or path.name.endswith(_SIDES):
        return
    yield f"## {title}\n"
    text = _readable(path)
    if text is None:
        yield f"Not a text: {path.stat().st_size:,} bytes.\n"
        return
    if len(text) > LONGEST:
        yield f"Its first {LONGEST:,} characters; it has {path.stat().st_size:,} bytes:\n"
        text = text[:LONGEST]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield f"{fence}\n{text.rstrip()}\n{fence}\n"


def _readable(path: Path) -> str | None:
    """A file's text, or more than can be shown of it; of a database, its statements; None where it is neither."""
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
    """The statements that make a database, read from a copy: what belongs to the run is not touched."""
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
