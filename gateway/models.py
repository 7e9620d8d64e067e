"""What goes over the control socket: a case to be served, and what was counted for it.

Everything in here refuses unknown keys, so that two versions that disagree say so at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Ending = Literal[
    "ok",
    "unauthorized",
    "rate_limited",
    "server_error",
    "malformed",
    "dropped",
    "empty",
    "hung",
    "client_gone",
    "refused",
]
"""How one request ended, as seen by the gateway.

`ok`: a complete reply was sent. `unauthorized`, `rate_limited`, `server_error`: the model's provider answered
401, 429, 5xx. `malformed`: the reply was no valid stream or JSON. `dropped`: the connection broke before a
reply. `empty`: a complete reply that says and calls nothing. `hung`: no reply came. `client_gone`: the
claw left, or the case was closed, before the reply was complete. `refused`: the request itself was wrong.
"""

ENDINGS: tuple[Ending, ...] = get_args(Ending)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseSpec(_Strict):
    """One case that the gateway is to serve."""

    case_id: str = Field(min_length=1)
    model: str
    """`scripted:<behaviour>`."""
    workdir: str = "/testbed"
    """The repository, inside the claw's container."""
    gold_patch: str = ""
    """The instance's own fix, for the behaviours that need it."""
    commands: tuple[str, ...] = ()
    """Shell commands, for the behaviours that run what they are given."""
    allowed_tools: tuple[str, ...] | None = None
    """The names of the tools that reach the model, whatever the claw offers; None: all."""
    request_log: Path
    """A file on the host, absolute, that gets one JSON line per request; its folder is made on demand."""
    request_bodies: Path | None = None
    """A folder on the host, absolute, that gets each request's JSON as the claw sent it; None: not kept."""


class TokenCounts(_Strict):
    """Tokens of all complete replies, in four classes that do not overlap; None is unknown, never 0."""

    input: int | None = 0
    """Prompt tokens without the cached ones."""
    cache_read: int | None = 0
    cache_write: int | None = 0
    output: int | None = 0


class CaseCounts(_Strict):
    """What one case asked for and got, so far."""

    requests: int = 0
    """POST requests, whatever became of them; a GET (a list of models) is logged and not counted."""
    turns: int = 0
    """Complete model replies."""
    tokens: TokenCounts = TokenCounts()
    endings: dict[Ending, int] = Field(default_factory=lambda: dict.fromkeys(ENDINGS, 0))
    """How many requests ended so; every ending is a key. A request still being answered is in none."""
    last_ending: Ending | None = None
    """The ending of the request that began last, of those that ended; `refused` only where all were."""
    tool_surface: list[str] = Field(default_factory=list)
    """The names of all tools that reached the model, sorted."""
    removed_tools: list[str] = Field(default_factory=list)
    """The names of all tools that the claw offered and the filter took out, sorted."""
    models: list[str] = Field(default_factory=list)
    """The model names that were asked for, sorted."""
