"""One request of a case and its reply, as a line of the case's request log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import BaseModel

from gateway.case_models import Api, Cost, Ending, FirstRequest, TokenCounts

_LONGEST_NAME = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """A text from a claw or a provider as it may be kept and shown: control characters are escapes.

    Otherwise it could move the cursor of a terminal, reverse a line, or break a file that must be UTF-8.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@dataclass
class Exchange:
    """One request and its reply, without headers and bodies, which may hold a key.

    The fields up to `first_request` are the keys of the log, in its order.
    """

    time: datetime = field(default_factory=lambda: datetime.now(UTC), init=False)
    """When the request arrived."""
    method: str
    path: str
    api: Api | None = None
    model: str | None = None
    """As the claw asked for it."""
    served_model: str | None = None
    """As the reply names it."""
    stream: bool | None = None
    offered: Sequence[str] = ()
    """The names of the tools in the claw's request."""
    tools: Sequence[str] = ()
    """The names of the tools that reached the model."""
    removed_calls: Sequence[str] = ()
    """The names of the removed tools that the reply called, as the model spelt them."""
    status: int | None = None
    ending: Ending | None = None
    """None while it is not known."""
    finish_reason: str | None = None
    """Why the model stopped, in the provider's own words."""
    replied: bool = False
    """Whether the model replied, completely or in part: what the provider charges for."""
    tokens: TokenCounts | None = None
    """None where no reply came, or it reported no usage."""
    cost: Cost | None = None
    """None where no reply came."""
    surcharges: Sequence[str] = ()
    """What the reply cost beside the list price of its tokens; if anything, its price is unknown."""
    tries: int = 0
    """How often it was sent to the provider."""
    waited: float = 0.0
    """Seconds for which it was held back here."""
    first_byte: float | None = None
    """Seconds from the last try to the first byte of its reply's body."""
    upstream_seconds: float | None = None
    """Seconds from the last try to the end of its reply."""
    latency: float | None = None
    """Seconds from its arrival to its end."""
    error: str | None = None
    """What went wrong, without any key."""
    first_request: FirstRequest | None = None
    """What it asked of the model, if it was the case's first request to go out."""

    number: int = 0
    """Its place among the case's requests, counted from 0 in order of arrival."""
    _started: float = field(default_factory=monotonic, init=False)

    def __post_init__(self) -> None:
        """Escape the control characters of what the claw chose."""
        self.method, self.path = plain(self.method), plain(self.path)

    def note_tools(self, offered: Iterable[str], passed: Iterable[str]) -> None:
        """Note the names of the tools in the request, and of those that reach the model."""
        self.offered, self.tools = (
            tuple(plain(name)[:_LONGEST_NAME] for name in names) for names in (offered, passed)
        )

    @property
    def counted(self) -> bool:
        """Whether it asks something of the model; a GET (a list of models) is free."""
        return self.method == "POST"

    @property
    def removed(self) -> set[str]:
        """The names of the tools that the filter removed from it."""
        return set(self.offered) - set(self.tools)

    @classmethod
    def of_line(cls, line: str, number: int = 0) -> Exchange:
        """A finished request, from its line in a log.

        Args:
            line: of a request log.
            number: of the request.

        Raises:
            ValueError: it is not a line of a request log.
        """
        row = json.loads(line)
        if not isinstance(row, dict) or not {"method", "path", "ending", "replied"} <= set(row):
            raise ValueError("not a line of a request log")
        known = {name: row[name] for name in _LOGGED if name in row and name != "time"}
        known["tokens"] = TokenCounts.model_validate(row["tokens"]) if row.get("tokens") else None
        first = row.get("first_request")
        known["first_request"] = FirstRequest.model_validate(first) if first else None
        known["cost"] = Cost.model_validate(row["cost"]) if row.get("cost") else None
        return cls(**known, number=number)

    def log_line(self) -> str:
        """The request as one line of JSON; to be called at its end."""
        self.latency = monotonic() - self._started
        return json.dumps({name: _as_json(getattr(self, name)) for name in _LOGGED})


_FIELDS = tuple(Exchange.__dataclass_fields__)
_LOGGED = _FIELDS[: _FIELDS.index("first_request") + 1]


def _as_json(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case datetime():
            return value.isoformat(timespec="milliseconds")
        case float():
            return round(value, 4)
    return value


def logged(log: Path) -> Iterator[Exchange]:
    """The requests in a log; a line that a crash of the machine cut short is left out (raises OSError)."""
    for number, line in enumerate(log.read_text("utf-8", errors="replace").splitlines()):
        with suppress(ValueError):
            yield Exchange.of_line(line, number)
