"""What a run was asked to do: validated once in the controller, handed to every worker as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

KeepContainer = Literal["never", "failed", "always"]
LONGEST = 10_000_000.0
"""Seconds. No timer of the machine takes any number, and one that fails would leave a claw without a deadline."""

_NOT_ATTRIBUTED = {"run_id", "artifacts", "resume", "keep_container", "revisions"}
"""Revisions stand in the manifest as the commits that they were found to be."""


class Settings(BaseModel):
    """The options of one run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    artifacts: Path
    """The folder of all runs, absolute."""
    model: str
    adapter: Literal["full", "bare"] = "full"
    """`bare`: the claw gets the issue alone, and what its final message says is judged, not what it did."""
    agent_timeout: float = Field(gt=0, le=LONGEST)
    """Seconds of wall clock for one claw on one instance."""
    max_turns: int = Field(gt=0)
    llm_no: int = Field(ge=0)
    eval_timeout: float = Field(ge=1, le=LONGEST)
    """Seconds for the tests of one evaluation; the harness takes whole ones."""
    resume: bool
    keep_container: KeepContainer
    egress: Literal["gateway", "open"]
    dataset: str | None = None
    revisions: dict[str, str] = {}
    """Of datasets on the hub, by set."""
    pids_limit: int
    memory: str

    def contender(self, claw: str) -> str:
        """What a number is of: the claw, with what was left of its adapter."""
        return claw if self.adapter == "full" else f"{claw}-{self.adapter}"

    def prompt_file(self, own: str) -> str:
        """The template in `prompts/` of a claw whose adapter names its own."""
        return own if self.adapter == "full" else "bare.txt"

    def attributed(self) -> dict[str, Any]:
        """The part of them that a number depends on, for the manifest."""
        return self.model_dump(mode="json", exclude=_NOT_ATTRIBUTED)
