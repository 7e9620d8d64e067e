"""Six small Python repositories with five tasks each, and the edits that an agent made for each task."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

_FOLDER = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class StudyTask:
    """A task, and an agent's work on it."""

    name: str
    issue: str
    start: dict[str, bytes]
    """The repository's files by path."""
    edited: dict[str, bytes]
    """The files as the agent left them; in every arm the same bytes."""
    is_right: bool
    """Whether the agent did what the issue asks for; otherwise it did competent work on something else."""
    test: str
    """Python code that ends without an error if, and only if, the issue is resolved."""


@cache
def study_tasks() -> tuple[StudyTask, ...]:
    """All tasks, in a fixed order."""
    return tuple(task for file in sorted(_FOLDER.glob("*.yaml")) for task in _tasks(file))


def _tasks(file: Path) -> list[StudyTask]:
    repository: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    files: dict[str, str] = repository["files"]
    (path,) = files  # one module each
    return [
        StudyTask(
            name=f"{file.stem}-{row['id']}",
            issue=row["issue"],
            start={name: content.encode() for name, content in files.items()},
            edited={path: _edited(files[path], row["edits"]).encode()},
            is_right=not row.get("wrong_intent", False),
            test=row["test"],
        )
        for row in repository["tasks"]
    ]


def _edited(content: str, edits: list[dict[str, str]]) -> str:
    """Replace blocks of lines, which are written without the indentation that they have in the file.

    Raises:
        ValueError: a block is not in the file exactly once.
    """
    for edit in edits:
        places = [
            (found.start(), found.end(), " " * depth)
            for depth in (0, 4, 8, 12, 16)
            for found in re.finditer(rf"^{re.escape(indent(edit['old'], ' ' * depth))}", content, re.MULTILINE)
        ]
        if len(places) != 1:
            raise ValueError(f"{len(places)} places for {edit['old']!r}")
        start, end, depth = places[0]
        content = content[:start] + indent(edit["new"], depth) + content[end:]
    return content
