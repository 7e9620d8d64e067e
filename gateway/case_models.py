"""The messages on the gateway's control socket: the case to serve, and what was counted for it.

All models refuse unknown keys, so that two versions that disagree fail at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Api = Literal["chat", "responses", "messages"]
"""A wire format: OpenAI's chat/completions, OpenAI's responses, Anthropic's messages."""
API_PATHS: Mapping[Api, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
"""Where each format is served, below the base URL."""

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
    "held_back",
    "refused",
    "cost_limit",
]
"""How one request ended, as the gateway saw it.

`ok`: a complete reply was sent. `unauthorized`, `rate_limited`, `server_error`: the provider answered 401, 429,
5xx. `malformed`: the reply was not a valid stream or JSON. `dropped`: the connection broke before the reply was
complete. `empty`: a complete reply without text or tool calls. `hung`: no reply came in time. `client_gone`: the
claw left, or the case was closed, before the reply was complete. `held_back`: the same, while the request waited
in the gateway for the provider's rate limit, for a retry or for room below a spend limit. `refused`: the request
itself was wrong. `cost_limit`: the spend limit of the run or of the case was reached, so the request was not sent.
"""

ENDINGS: tuple[Ending, ...] = get_args(Ending)


class Strict(BaseModel):
    """A model that cannot be changed and refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseSpec(Strict):
    """One case that the gateway is to serve."""

    case_id: str = Field(min_length=1)
    model: str
    """`scripted:<behaviour>`, `replay:<folder>`, or `<provider>/<model>` of the run's provider."""
    workdir: str = "/testbed"
    """The repository's path in the claw's container."""
    gold_patch: str = ""
    """The instance's own fix, for the scripted behaviours that need it."""
    commands: tuple[str, ...] = ()
    """Shell commands, for the scripted behaviours that run what they are given."""
    allowed_tools: tuple[str, ...] | None = None
    """The names of the tools that may reach the model; None: all."""
    request_log: Path
    """An absolute path on the host: gets one JSON line per request. Its folder is created if needed."""
    request_texts: Path | None = None
    """A folder on the host, absolute: gets system prompt and tools of the first request, once for each digest."""
    request_bodies: Path | None = None
    """A folder on the host, absolute: gets each request's JSON as the claw sent it. None: bodies are not kept."""
    cassette: Path | None = None
    """An absolute path on the host: gets every exchange in full (`gateway.cassette`). None: no recording."""
    replayed: Path | None = None
    """The cassette that a `replay:` model answers from."""


Scalar = bool | int | float | str | None


class FirstRequest(Strict):
    """A case's first request as it went out, without the task."""

    api: Api
    system_sha256: str | None
    """The digest of the system prompt; None without one."""
    tools_sha256: str | None
    """The digest of the tools; None if it offers none."""
    settings: dict[str, Scalar]
    """Its other keys: temperature, limits of tokens, ...; a value that is no scalar is JSON text."""


class TokenCounts(Strict):
    """Tokens in four classes that do not overlap; None is unknown, never 0."""

    input: int | None = 0
    """Prompt tokens without the cached ones."""
    cache_read: int | None = 0
    cache_write: int | None = 0
    output: int | None = 0
    """Everything that the model wrote, reasoning included."""
    reasoning: int | None = None
    """The part of `output` that was reasoning, where the provider tells it."""
    cache_write_1h: int | None = None
    """The part of `cache_write` that is kept for an hour, which costs more, where the provider tells it."""

    @property
    def known(self) -> int:
        """The sum of the classes that are known."""
        return sum(part or 0 for part in (self.input, self.cache_read, self.cache_write, self.output))


class Cost(Strict):
    """US dollars; None is unknown, never 0. Sums cover what is known; they are incomplete if `unpriced` > 0."""

    priced: Decimal | None = None
    """By the price table, cache reads and writes at their own prices; None where no reply could be priced."""
    told: Decimal | None = None
    """What the provider itself said that it charged; None where it said nothing."""
    unpriced: int = 0
    """How many replies have no price: their model's price is unknown, or they reported no usage."""
    held: Decimal | None = None
    """What counts against spend limits: for each reply the higher of the two, or the most that it may have
    cost where neither is known; None where no estimate is possible."""


class CaseCounts(Strict):
    """What one case has requested and received so far."""

    requests: int = 0
    """POST requests, however they ended; a GET (a list of models) is logged and not counted."""
    turns: int = 0
    """Complete model replies."""
    tokens: TokenCounts = TokenCounts(reasoning=0)
    endings: dict[Ending, int] = Field(default_factory=lambda: dict.fromkeys(ENDINGS, 0))
    """How many requests ended in each way; every ending is a key. Requests in progress are not included."""
    last_ending: Ending | None = None
    """The ending of the last request to begin, among those that ended; `refused` only if all were refused."""
    last_error: str = ""
    """What went wrong with it, in the provider's words or the gateway's, without any key."""
    tool_surface: list[str] = Field(default_factory=list)
    """The names of all tools that reached the model, sorted."""
    removed_tools: list[str] = Field(default_factory=list)
    """The names of all tools that the claw offered and the filter removed, sorted."""
    models: list[str] = Field(default_factory=list)
    """The model names that were asked for, sorted."""
    served_models: list[str] = Field(default_factory=list)
    """The model names in the replies, sorted."""
    first_request: FirstRequest | None = None
    """None if no request went out."""
    unknown_usage: int = 0
    """How many replies, complete or not, reported no usage: they are missing from the sum in `tokens`."""
    cost: Cost = Cost()
    stop_reasons: dict[str, int] = Field(default_factory=dict)
    """How many replies ended for which reason, in the provider's own words."""
    waited: float = 0.0
    """Seconds in which at least one request of the case waited here for a rate limit or a retry."""
    retries: int = 0
    """How often a request was sent again after a rate limit or an overload."""
    upstream_seconds: float = 0.0
    """The time from sending a request to the end of its reply, summed over replies."""
    replay_diff: str | None = None
    """Where a replayed case first made a request that its recording lacks; None: nowhere."""
