"""A run that is over, as its files tell it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finished:
    """A run that is over."""

    name: str
    folder: Path
    """The case's artifacts."""
    refused: str
    """What the adapter said when it could not take the run on; "" where the claw was run."""
    failed: str
    """What the suite said of the provider, where that ended the case."""
    budget: float
    began: float
    ended: float
    seen: str

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Of the export; {} where there is none."""
        path = self.folder / "export.json"
        return dict(json.loads(path.read_bytes())) if path.exists() else {}

    @cached_property
    def usage(self) -> dict[str, Any]:
        """What the gateway counted, and what the claw says."""
        return dict(json.loads((self.folder / "usage.json").read_bytes()))

    @cached_property
    def requests(self) -> list[dict[str, Any]]:
        """The chat requests, whole, in their order."""
        return [json.loads(path.read_bytes()) for path in sorted((self.folder / "bodies").glob("*.json"))]

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        """The gateway's log of all requests."""
        path = self.folder / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @cached_property
    def patch(self) -> str:
        """The patch that would be judged."""
        return (self.folder / "git.patch").read_bytes().decode()

    @cached_property
    def session(self) -> bytes:
        """All files of the saved session, one after the other."""
        paths = sorted((self.folder / "session").rglob("*"))
        return b"\n".join(path.read_bytes() for path in paths if path.is_file())
