"""What the server keeps: requests as they came, answers as they went out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from support.dialects.charges import Charge


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    target: str
    """The path and the query."""
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """The last value of a header, whatever its case."""
        return {key.lower(): value for key, value in self.headers}.get(name.lower())


@dataclass
class Sent:
    """An answer as it went out."""

    status: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)
    charge: Charge | None = None
    """None: nothing was charged, or the reply tells no usage."""
    complete: bool = False
    """Whether all of it was given to the connection; what of that the client read, only the client knows."""
