"""The records of a run: models of its JSON files. Unknown keys and other formats are refused.

Importing pydantic is slow, so import this module only where a record is read or written.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluation.collection import Arm, Kind
from evaluation.outcomes import POLICY, Ending, Outcome, Policy, Verdict
from records.files import RunError, write_json

FORMAT: Literal[1] = 1
"""The format of all records of a run. Raise it when a reader of the former one could be misled."""


class Part(BaseModel):
    """A part of a record."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Record(Part):
    """A JSON file of a run."""

    format: Literal[1] = FORMAT
    """See `FORMAT`."""

    def facts(self) -> dict[str, Any]:
        """The record as JSON values."""
        return self.model_dump(mode="json")


R = TypeVar("R", bound=Record)


def write_record(path: Path, record: Record) -> None:
    """Replace a record's file (raises OSError)."""
    write_json(path, record.facts())


def read_record(path: Path, model: type[R]) -> R | None:
    """Read a record.

    Returns:
        None if the file does not exist or is incomplete, because a crash may have cut it off.

    Raises:
        RunError: the file is complete but not a valid record, or another version of the suite wrote it.
        OSError: it can't be read.
    """
    try:
        data = path.read_bytes()
        row = json.loads(data) if data.endswith(b"\n") else None
    except (FileNotFoundError, ValueError):
        return None
    if row is None:
        return None
    if isinstance(row, dict) and row.get("format") != FORMAT:
        whose = "a newer" if isinstance(row.get("format"), int) and row["format"] > FORMAT else "an older"
        raise RunError(
            f"{path} was written by {whose} clawbench, whose records this one can't read: use that version for "
            "this run, or choose another --run-id"
        )
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RunError(
            f"{path} is not a valid record ({where and f'{where}: '}{first['msg']}): restore it from a copy, or "
            "choose another --run-id"
        ) from error


# -- the run --------------------------------------------------------------------------------------


class SuiteVersion(Part):
    """The suite itself."""

    version: str
    commit: str | None
    """The commit of the checkout, with `-dirty` if it has changes; None outside a checkout."""


class Limits(Part):
    """Options that may differ between the commands of a run."""

    spend_limit: str | None = None
    """US dollars for all cases of the run together; None if there is no limit."""
    samples: int = 1
    """The number of cases of each claw and instance."""


class ServedModel(Part):
    """The model as the claws' configs name it."""

    name: str = ""
    apis: tuple[str, ...] = ()
    """The wire formats that it is served in, best first."""
    context_window: int | None = None
    """Tokens; None if not declared."""
    behind: dict[str, Any] | None = None
    """The provider with its address, transforms, limits and price table; None if a script or recording answers."""


class RunSettings(Part):
    """All options that affect results; those that no reader needs are extra fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: str
    """The model's name, as given by `--model`."""
    served: ServedModel | None = None
    network: Literal["gateway", "open", "own"] = "gateway"
    """What the workspaces can reach: only the gateway, the internet as well, or the internet without a gateway."""
    adapter_parts: tuple[str, ...] | None = None
    """The parts of the adapter that were on; None for the usual adapter."""
    made_elsewhere: bool = False
    """Whether other tools made the patches, so that nothing is known about how they came about."""
    harness: str = ""
    """The official harness that judges rows in the current format."""
    dataset_sha256: str | None = None
    """The digest of a local dataset."""

    @property
    def has_gateway(self) -> bool:
        """Whether the claws reach the model through the gateway, which counts and limits their use of it."""
        return self.network != "own" and not self.made_elsewhere

    @property
    def can_cost(self) -> bool:
        """Whether requests can have costs that the gateway counts."""
        return self.has_gateway and self.served is not None and self.served.behind is not None


class ClawVersion(Part):
    """A claw of a run."""

    version: str
    prompt: str
    """The template in `prompts/`."""
    prompt_sha256: str
    found_by: str = ""
    runtime_sha256: str | None = None
    """The digest of all that the container gets from the host to run it; None if an older suite did not record it."""
    adapter_sha256: str = ""
    """The digest of the adapter's package and of the modules that all adapters share."""
    config_sha256: str = ""


class RowsSource(Part):
    """Where the rows of a set of instances come from."""

    source: str
    """The dataset's name, or the path of a local copy."""
    revision: str | None
    harness: str
    """The official harness that judges them."""


EvalNetwork = Literal["none", "open", "unknown"]


class GoldMark(Part):
    """The official harness's verdict on an instance's gold patch on this machine."""

    gold: Verdict
    empty: Verdict
    """Its verdict on an empty patch."""
    problems: tuple[str, ...]
    """What shows that the environment is broken; empty if nothing does."""
    network: EvalNetwork = "unknown"
    """The network with which the gold patch was judged: none if it resolves without one."""
    when: str


class RunManifest(Record):
    """`<run>/manifest.json`: everything that the run's results depend on."""

    run_id: str = ""
    created: str = ""
    clawbench: SuiteVersion | None = None
    limits: Limits = Limits()
    """The limits of the latest command; the journal has every change."""
    settings: RunSettings
    claws: dict[str, ClawVersion]
    rows: dict[str, RowsSource] = {}
    """The sources of the instances' rows, by set."""
    gold: dict[str, GoldMark] = {}
    """The instances whose environment is known to be broken on this machine, by id."""


class PlanGroup(Part):
    """The planned cases of one claw and one sample."""

    claw: str
    sample: int
    instance_ids: tuple[str, ...]


class PlanRecord(Record):
    """`<run>/plan.json`: all cases that any command selected."""

    planned: tuple[PlanGroup, ...]


# -- the case -------------------------------------------------------------------------------------


class AttemptRecord(Record):
    """`case.json`: an attempt at the case has begun."""

    claw: str
    instance_id: str
    sample: int
    attempt: int
    """Counted from 1."""


class ClawOfCase(Part):
    """The claw of a case."""

    name: str
    version: str
    found_by: str = ""


class CaseManifest(Record):
    """The case's `manifest.json`: everything that its result depends on, written before the agent starts."""

    run_id: str
    claw: ClawOfCase
    instance_id: str
    sample: int
    prompt: str
    """The template in `prompts/`."""
    prompt_template_sha256: str
    harness: str
    """The official harness that judges it."""
    settings: dict[str, Any] = {}
    """The run's settings."""
    written: str = ""
    repo: str = "?"
    base_commit: str = ""
    row_sha256: str = ""
    agent_files: tuple[str, ...] = ()
    """The paths that are kept out of the patch, as the adapter declares them."""
    allowed_tools: tuple[str, ...] | None = None
    """The tools that the gateway passes on to the model; None for all."""
    model: dict[str, Any] = {}
    """The model's name, wire format and context window, as in the claw's config."""
    source_image: dict[str, Any] = {}
    prepared_image: dict[str, Any] = {}
    evaluation_image: str = ""
    evaluation: dict[str, Any] = {}
    """How far the evaluation's container is confined: its network and its limits."""
    history: dict[str, Any] = {}
    """The proof that the workspace has no commits except the start commit and its ancestors; empty if
    `--adapter-parts` left the preparation out."""
    engine: dict[str, Any] = {}
    gold: GoldMark | None = None
    """None if the environment was never checked on this machine."""
    clawbench: str = ""


class Tokens(Part):
    """Tokens in classes that do not overlap; None means unknown, never 0."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    """The part of `output` that was reasoning."""
    cache_write_1h: int | None = None
    """The part of `cache_write` that is kept for an hour."""


class Cost(Part):
    """US dollars; None means unknown, never 0."""

    priced: Decimal | None = None
    """By the price table."""
    told: Decimal | None = None
    """As the provider itself stated it."""
    unpriced: int | None = 0
    """Replies without a price: with any of them, `priced` is only a part of the cost."""
    held: Decimal | None = None
    """What counts against the spend limits."""

    @property
    def is_of_no_reply(self) -> bool:
        """Whether the case got no reply that could have a price."""
        return (self.priced, self.unpriced) == (None, 0)


class FirstRequest(Part):
    """A case's first request to the model as it went out, without the task. See `gateway.case_models.FirstRequest`."""

    api: str
    system_sha256: str | None
    """The name, without `.json`, of the file in the run's `requests/` that has the system prompt; None without one."""
    tools_sha256: str | None
    """The same for the tools."""
    settings: dict[str, bool | int | float | str | None]
    """Temperature, limits of tokens, and all other keys."""


class ModelUse(Record):
    """How a case used the model, as counted by the gateway. None means unknown, never 0."""

    requests: int | None = 0
    turns: int | None = 0
    """Complete replies."""
    removed_tools: tuple[str, ...] = ()
    """Tools that the claw offered and the gateway removed."""
    tokens: Tokens | None = None
    """None if the case never asked the model."""
    unknown_usage: int | None = 0
    """Replies without usage: with any of them, `tokens` is only a lower bound."""
    cost: Cost | None = None
    """None if requests are free."""
    stop_reasons: dict[str, int] = {}
    """How many replies ended for which reason, in the provider's words."""
    waited: float | None = 0.0
    """Seconds for which the gateway held requests back."""
    retries: int | None = 0
    """Requests that the gateway sent again."""
    models: tuple[str, ...] | None = None
    """The model names that the claw asked for; None if unknown: without a gateway, or made by an older suite."""
    served_models: tuple[str, ...] | None = None
    """The model names in the provider's replies; None as above."""
    first_request: FirstRequest | None = None
    """None as above, or if no request went out."""


class AgentResult(ModelUse):
    """What is known about the claw's work."""

    model_name_or_path: str = ""
    """The name in the prediction."""
    ending: Ending | None = None
    """How the claw's run ended; None if the case failed before."""
    is_final: bool = False
    """Whether the patch is the claw's final result, not an intermediate state when infrastructure failed."""
    detail: str = ""
    exit_code: int | None = None
    usage_mismatches: tuple[str, ...] = ()
    """Where the claw's own count of tokens differs from the gateway's."""
    changed_files: int = 0
    patch_bytes: int = 0
    start_tree: str = ""
    final_tree: str = ""
    """The git trees before and after the claw's work."""
    patch_tree: str = ""
    """The git tree that the patch gives: the final tree without the claw's own files."""
    seconds: dict[str, float] = {}
    """Seconds by step."""
    patch_sha256: str = ""


class ExportRecord(AgentResult):
    """`export.json`: the patch is on disk."""

    model_name_or_path: str
    ending: Ending
    is_final: bool


class ArmRecord(Part):
    """What the diff in the claw's final message gave, with `--collect paired`."""

    arm: Arm
    kind: Kind
    """Compared with the files that the claw left."""
    verdict: Verdict
    """The official harness's; `apply_failed` without asking it if the patch was refused."""
    detail: str = ""
    seconds: float = 0.0
    """For applying the patch and reading the result."""


class CaseRecord(AgentResult):
    """`metadata.json`: the case has an outcome."""

    claw: str
    agent_label: str
    """The label of results: the claw, followed by the way of the patch unless that is `workspace`."""
    instance_id: str
    sample: int
    outcome: Outcome
    verdict: Verdict = Verdict.NOT_JUDGED
    failing_tests: tuple[str, ...] = ()
    finished: str = ""
    """When the outcome was written, in UTC."""
    attempt: int = 1
    language_group: str = ""
    infra_retries: int = 0
    """How often the command retried the case after infrastructure errors."""
    environment_problems: tuple[str, ...] = ()
    """What is known to be wrong with its environment on this machine."""
    arms: tuple[ArmRecord, ...] = ()
    """The other ways in which the patch could have reached the judge; empty without `--collect paired`."""
    files_sha256: str = ""
    """The digest of `files.json`."""

    @property
    def policy(self) -> Policy:
        """What follows from the outcome."""
        return POLICY[self.outcome]
