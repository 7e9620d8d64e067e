"""What goes over the control socket: a case to be served, and what was counted for it.

Everything in here refuses unknown keys, so that two versions that disagree say so at once.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Api = Literal["chat", "responses", "messages"]
"""A wire format: OpenAI's chat/completions, OpenAI's responses, Anthropic's messages."""

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
    "budget",
]
"""How one request ended, as seen by the gateway.

`ok`: a complete reply was sent. `unauthorized`, `rate_limited`, `server_error`: the model's provider answered
401, 429, 5xx. `malformed`: the reply was no valid stream or JSON. `dropped`: the connection broke before a
reply. `empty`: a complete reply that says and calls nothing. `hung`: no reply came. `client_gone`: the
claw left, or the case was closed, before the reply was complete. `held_back`: the same while the request was held
back here, by the provider's rate limit or until a retry. `refused`: the request itself was wrong.
`budget`: the spend limit of the run or of the case was reached, so it was not let through.
"""

ENDINGS: tuple[Ending, ...] = get_args(Ending)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseSpec(_Strict):
    """One case that the gateway is to serve."""

    case_id: str = Field(min_length=1)
    model: str
    """`scripted:<behaviour>`, `replay:<folder>`, or `<provider>/<model>` of the run's provider."""
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
    cassette: Path | None = None
    """A file on the host, absolute, that gets every exchange whole (`gateway.cassette`); None: not recorded."""
    replayed: Path | None = None
    """The cassette that a `replay:` model answers from."""


class TokenCounts(_Strict):
    """Tokens in four classes that do not overlap; None is unknown, never 0."""

    input: int | None = 0
    """Prompt tokens without the cached ones."""
    cache_read: int | None = 0
    cache_write: int | None = 0
    output: int | None = 0
    """All that the model wrote, reasoning included."""
    reasoning: int | None = None
    """The part of `output` that was reasoning, where the provider tells it."""
    cache_write_1h: int | None = None
    """The part of `cache_write` that is kept for an hour, which costs more, where the provider tells it."""

    @property
    def known(self) -> int:
        """The sum of the classes that are known."""
        return sum(part or 0 for part in (self.input, self.cache_read, self.cache_write, self.output))


class Cost(_Strict):
    """US dollars; None is unknown, never 0. Sums are of what is known: not whole with `unpriced` above 0."""

    priced: Decimal | None = None
    """By the price table, cache reads and writes at their own prices; None where no reply could be priced."""
    told: Decimal | None = None
    """What the provider itself said that it charged; None where it said nothing."""
    unpriced: int = 0
    """How many replies have no price: their model's is not known, or they told no usage."""
    held: Decimal | None = None
    """What is held against spend limits: of each reply the dearer of the two, or an estimate from its size where
    neither is known; None where not even that can be told."""


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
    last_error: str = ""
    """What went wrong with it, in the provider's words or the gateway's, without any key."""
    tool_surface: list[str] = Field(default_factory=list)
    """The names of all tools that reached the model, sorted."""
    removed_tools: list[str] = Field(default_factory=list)
    """The names of all tools that the claw offered and the filter took out, sorted."""
    models: list[str] = Field(default_factory=list)
    """The model names that were asked for, sorted."""
    unknown_usage: int = 0
    """How many replies, whole or broken off, told no usage: with these, `tokens` is a sum of what is known."""
    cost: Cost = Cost()
    stop_reasons: dict[str, int] = Field(default_factory=dict)
    """How many replies ended for which reason, in the provider's own words."""
    waited: float = 0.0
    """Seconds in which the case had a request held back here, by a rate limit or until a retry."""
    retries: int = 0
    """Requests that were sent to the provider once more, after a rate limit or an overload."""
    upstream_seconds: float = 0.0
    """The sum over replies of the time from a request sent to its reply's end."""
    departure: str | None = None
    """Where a replayed case first asked for what its recording lacks; None: nowhere."""


class RunTotals(_Strict):
    """What all cases of a gateway's process add up to, so far."""

    cases: int = 0
    """Cases that were opened, again after a rerun."""
    requests: int = 0
    turns: int = 0
    tokens: TokenCounts = TokenCounts()
    unknown_usage: int = 0
    cost: Cost = Cost()
    """Of this process alone."""
    waited: float = 0.0
    """Seconds, summed over cases."""
    retries: int = 0
    spent: Decimal = Decimal(0)
    """US dollars that are held against the spend limit: with what the run's earlier cases cost, and with
    estimates for replies that told no usage."""
    budget_reached: bool = False
    """Whether the run's spend limit lets no new request through."""
