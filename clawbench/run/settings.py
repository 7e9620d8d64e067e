"""The options of a run: validated once in the controller, and sent unchanged to every worker."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluation.collection import AdapterPart
from records.case_id import MOST_SAMPLES

KeepContainer = Literal["never", "failed", "always"]
Network = Literal["gateway", "open", "own"]
Collect = Literal["workspace", "message-strict", "message-fuzzy", "paired"]
LONGEST = 10_000_000.0
"""Seconds. A longer timeout could overflow a timer, and the claw would have no deadline."""

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
    "outage_limit",
    "record",
    "recordings",
    "skip_checks",
    "image_policy",
    "disk_reserve",
    "predictions",
}
"""Settings that do not affect results. Revisions are in the manifest as the commits that they resolved to."""

_OF_THE_JUDGE = {"model", "eval_timeout", "eval_network", "dataset", "platform"}
"""Settings that affect the official harness's verdict."""


def way_in_names(collect: str, adapter_parts: Sequence[str] | None) -> str:
    """How the patch is made and collected, as the end of a claw's name; "" if it is the usual way."""
    if adapter_parts is not None:
        return f"-parts-{'-'.join(adapter_parts) or 'none'}"
    return "" if collect == "workspace" else f"-{collect}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Served(_Strict):
    """The model as claws' configs name it, and what manifests record about its provider. Contains no secret."""

    name: str
    """The name that claws must send; "" means the model in the claw's own configuration."""
    apis: tuple[str, ...]
    """The wire formats that it is served in, best first."""
    context_window: int | None = None
    """Tokens, if the provider declares them."""
    behind: dict[str, Any] | None = None
    """The provider (address, transforms, limits, price table); None for models without one."""

    def api_for(self, spoken: Sequence[str]) -> str:
        """The best wire format among those that a claw speaks; without a gateway, the claw's first."""
        return next((api for api in self.apis if api in spoken), spoken[0])


class Settings(_Strict):
    """The options of one run."""

    run_id: str
    artifacts: Path
    """The folder of all runs, absolute."""
    model: str
    """Its name in records: `scripted:<name>`, `<provider>/<model>`, `replay:<run>`, `own[:<name>]`."""
    served: Served | None = None
    """None for a scripted model, whose name says everything."""
    collect: Collect = "workspace"
    """How the patch gets to the judge: an `evaluation.collection.Arm`, or all of them from one run of the claw."""
    adapter_parts: tuple[AdapterPart, ...] | None = None
    """The parts of the adapter that are on, if their worth is studied; they decide `collect`."""
    agent_timeout: float = Field(gt=0, le=LONGEST)
    """Seconds of wall-clock time for one claw on one instance."""
    exclude_waits: bool = False
    """Whether the timeout is extended by the time that the gateway held the case's requests back."""
    spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for all cases of the run id together."""
    case_spend_limit: Decimal | None = Field(default=None, gt=0)
    """US dollars for each case."""
    samples: int = Field(default=1, gt=0, le=MOST_SAMPLES)
    """The number of cases of each claw and instance."""
    agents: int = Field(default=1, gt=0)
    """How many claws work at the same time."""
    eval_slots: int = Field(default=1, gt=0)
    """How many evaluations run at the same time on this machine."""
    infra_retries: int = Field(default=2, ge=0)
    """How often a case is retried after infrastructure errors, within one command."""
    outage_limit: float = Field(default=1800, ge=0, le=LONGEST)
    """Seconds for which cases wait while the engine or the provider is gone."""
    max_turns: int = Field(gt=0)
    llm_no: int = Field(ge=0)
    eval_timeout: float = Field(ge=1, le=LONGEST)
    """Seconds for the tests of one evaluation; the harness takes whole seconds."""
    eval_network: Literal["auto", "none", "open"] = "auto"
    """Whether evaluations get a network. auto: none where gold resolves without one on this machine, else open."""
    resume: bool
    """Whether existing results of the run are kept."""
    keep_container: KeepContainer
    network: Network = "gateway"
    """What a workspace can reach: only the gateway; the gateway and the internet (`open`); or the internet without a
    gateway (`own`), where the claw uses the user's own configuration and credentials."""
    record: bool = False
    recordings: Path | None = None
    """The folder from which a `replay:` model answers."""
    dataset: str | None = None
    revisions: dict[str, str] = {}
    """The revisions of datasets on the hub, by set."""
    platform: str | None = None
    """The platform of images and containers; None means the engine's own."""
    image_policy: Literal["keep", "prune"] | int = "keep"
    """What happens to images that the suite pulled or built; a number is the bytes that they may take."""
    disk_reserve: int = Field(default=0, ge=0)
    """Bytes that must be free on the engine's disk for a case to begin; on the artifacts' disk, a tenth of that."""
    predictions: dict[str, str] = {}
    """The contenders whose patches were made elsewhere, with the digests of their predictions; then no claw runs."""
    pids_limit: int
    memory: str
    skip_checks: bool = False
    """Whether the checks before a real run are skipped."""

    @property
    def is_made_elsewhere(self) -> bool:
        """Whether the patches were made elsewhere and are only judged here."""
        return bool(self.predictions)

    @property
    def has_gateway(self) -> bool:
        """Whether claws reach the model through the gateway."""
        return self.network != "own" and not self.is_made_elsewhere

    @property
    def evaluators(self) -> int:
        """Workers for evaluations, in addition to one worker for each agent."""
        return min(self.eval_slots, self.agents)

    @property
    def at_once(self) -> str:
        """The numbers of agents and evaluations, for the user."""
        agents, slots = self.agents, self.eval_slots
        return f"{agents} agent{'s' * (agents > 1)} and {slots} evaluation{'s' * (slots > 1)} at once"

    @property
    def endpoint(self) -> Served:
        """The model as claws' configs name it."""
        return self.served or Served(name=self.model.replace(":", "-"), apis=("chat",))

    @property
    def has_provider(self) -> bool:
        """Whether a provider behind the gateway answers, not a script or a recording."""
        return self.has_gateway and self.served is not None and self.served.behind is not None

    @property
    def has_price(self) -> bool:
        """Whether requests could cost anything: scripted and recorded answers are free."""
        return self.network == "own" or (self.served is not None and self.served.behind is not None)

    def agent_label(self, claw: str) -> str:
        """The label of results: the claw, followed by the way of the patch unless that is the usual one."""
        return f"{claw}{way_in_names(self.collect, self.adapter_parts)}"

    def has(self, part: AdapterPart) -> bool:
        """Whether a part of the adapter is on; all are unless some were chosen."""
        return self.adapter_parts is None or part in self.adapter_parts

    def prompt_file(self, own: str) -> str:
        """The template in `prompts/`.

        Args:
            own: the one that the claw's adapter names.
        """
        if self.adapter_parts is not None:
            # with and without the export, the same words
            return "paired.txt" if AdapterPart.PROMPT in self.adapter_parts else "bare.txt"
        return {"workspace": own, "paired": "paired.txt"}.get(self.collect, "bare.txt")

    def attributed(self) -> dict[str, Any]:
        """The settings that affect results, for the manifest.

        The run's spend limit and the number of samples are left out: they determine how many cases are run, and a run
        may be resumed with higher ones. A case's spend limit is included, like its timeout. Of patches that were made
        elsewhere, only the judge's settings are known.
        """
        if self.is_made_elsewhere:
            known = self.model_dump(mode="json", include=_OF_THE_JUDGE)
            return {**known, "made_elsewhere": True}
        return self.model_dump(mode="json", exclude=_NOT_ATTRIBUTED)
