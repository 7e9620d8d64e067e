"""What a run was asked to do: validated once in the controller, handed to every worker as it is."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

KeepContainer = Literal["never", "failed", "always"]
MOST_SAMPLES = 1000
LONGEST = 10_000_000.0
"""Seconds. No timer of the machine takes any number, and one that fails would leave a claw without a deadline."""

_NOT_ATTRIBUTED = {
    "run_id",
    "artifacts",
    "resume",
    "keep_container",
    "revisions",
    "spend_limit",
    "samples",
    "agents",
    "eval_slots",
    "infra_retries",
    "record",
    "recordings",
    "skip_checks",
    "image_policy",
    "disk_reserve",
}
"""Revisions stand in the manifest as the commits that they were found to be."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Served(_Strict):
    """The model as claws are told of it, and as manifests name what stands behind it. Nothing in it is secret."""

    name: str
    """As claws must send it; "" is the one that a claw's own configuration names."""
    apis: tuple[str, ...]
    """The wire formats that it is answered in, best first."""
    context_window: int | None = None
    """Tokens, where a provider declares them."""
    behind: dict[str, Any] | None = None
    """The provider (address, transforms, limits, price table); None where there is none."""

    def api_for(self, spoken: Sequence[str]) -> str:
        """The wire format to speak with it: its best of those that a claw speaks."""
        # with the gateway off, it is the affair of the claw's own configuration
        return next((api for api in self.apis if api in spoken), spoken[0])


class Settings(_Strict):
    """The options of one run."""

    run_id: str
    artifacts: Path
    """The folder of all runs, absolute."""
    model: str
    """What numbers are attributed to: `scripted:<name>`, `<provider>/<model>`, `replay:<run>`, `own[:<name>]`."""
    served: Served | None = None
    """None: a scripted model, which is all that its name says."""
    adapter: Literal["full", "bare"] = "full"
    """`bare`: the claw gets the issue alone, and what its final message says is judged, not what it did."""
    agent_timeout: float = Field(gt=0, le=LONGEST)
    """Seconds of wall clock for one claw on one instance."""
    exclude_waits: bool = False
    """Whether that is extended by the time that the case was held back at the gateway."""
    spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for all cases of the run id together."""
    case_spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for each case."""
    samples: int = Field(default=1, gt=0, le=MOST_SAMPLES)
    """Cases of each claw and instance."""
    agents: int = Field(default=1, gt=0)
    """That may be at work at once."""
    eval_slots: int = Field(default=1, gt=0)
    """Evaluations at once, on this machine."""
    infra_retries: int = Field(default=2, ge=0)
    """How often a case that infrastructure broke is run again within one command."""
    max_turns: int = Field(gt=0)
    llm_no: int = Field(ge=0)
    eval_timeout: float = Field(ge=1, le=LONGEST)
    """Seconds for the tests of one evaluation; the harness takes whole ones."""
    resume: bool
    keep_container: KeepContainer
    egress: Literal["gateway", "open"]
    gateway: Literal["on", "off"] = "on"
    """`off`: claws ask their own providers, by their user's own configuration and credentials."""
    record: bool = False
    recordings: Path | None = None
    """The folder that a `replay:` model answers from."""
    dataset: str | None = None
    revisions: dict[str, str] = {}
    """Of datasets on the hub, by set."""
    platform: str | None = None
    """Of images and containers; None: the engine's own."""
    image_policy: Literal["keep", "prune"] | int = "keep"
    """What becomes of images that the suite pulled or made; a number is a budget in bytes."""
    disk_reserve: int = Field(default=0, ge=0)
    """Bytes that must be free on the engine's disk for a case to begin; on the artifacts' disk a tenth of it."""
    pids_limit: int
    memory: str
    skip_checks: bool = False
    """Whether what is looked at before a real run is left out."""

    @property
    def endpoint(self) -> Served:
        """The model as claws are told of it."""
        return self.served or Served(name=self.model.replace(":", "-"), apis=("chat",))

    @property
    def has_price(self) -> bool:
        """Whether there is anything that its requests could cost: scripted and recorded answers are free."""
        return self.gateway == "off" or (self.served is not None and self.served.behind is not None)

    def contender(self, claw: str) -> str:
        """What a number is of: the claw, with what was left of its adapter."""
        return claw if self.adapter == "full" else f"{claw}-{self.adapter}"

    def prompt_file(self, own: str) -> str:
        """The template in `prompts/` of a claw whose adapter names its own."""
        return own if self.adapter == "full" else "bare.txt"

    def attributed(self) -> dict[str, Any]:
        """The part of them that a number depends on, for the manifest.

        The run's spend limit and the number of samples are not among them: they say how many cases are run, and a
        run goes on under higher ones. The case's is a budget of the claw, like its time.
        """
        return self.model_dump(mode="json", exclude=_NOT_ATTRIBUTED)
