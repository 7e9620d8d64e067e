"""The rows of instances: what a case needs to know of its task, checked before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evaluation.lists import DATASETS, ListedInstance


class InstanceError(ValueError):
    """A row is missing, malformed, or of a shape that can't be judged here."""


class Instance(BaseModel):
    """One row in the shape of swebench 5; columns that the suite has no use for are kept for the harness."""

    model_config = ConfigDict(extra="allow", frozen=True)

    instance_id: str
    repo: str
    base_commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    problem_statement: str
    patch: str
    """The gold patch: for the harness's own checks and the scripted model, never for a claw."""
    test_patch: str
    version: str
    FAIL_TO_PASS: list[str]
    PASS_TO_PASS: list[str]
    image: str
    eval_script: str
    log_parser: str
    eval_type: str

    @field_validator("FAIL_TO_PASS", "PASS_TO_PASS", mode="before")
    @classmethod
    def _parsed(cls, value: object) -> object:
        """Datasets ship the lists as JSON strings."""
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("version", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return str(value) if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _has_tests(self) -> Instance:
        if not self.FAIL_TO_PASS:
            # the harness resolves such a row for any patch
            raise ValueError("FAIL_TO_PASS is empty: any patch would count as resolving it")
        return self


def load_instance(listed: ListedInstance, *, demo: Path, dataset: str | None = None) -> Instance:
    """The row of a listed instance.

    Args:
        listed: from the instance lists.
        demo: the embedded task repo.
        dataset: where the rows of the real sets are instead of their official dataset: a `.json`, `.jsonl` or
            `.parquet` file, a saved dataset's folder or another name on the hub.

    Raises:
        InstanceError: there is no such row, it is malformed, or the dataset can't be read.
    """
    # swebench takes seconds to import, and collection must not pay for it
    from swebench.harness.utils import load_swebench_dataset  # noqa: PLC0415
    from swebench.task.repo import load_task  # noqa: PLC0415

    if listed.embedded:
        row = load_task(demo / "tasks" / listed.instance_id)
        return checked(row)
    name = dataset or DATASETS[listed.set_name]
    try:
        rows = load_swebench_dataset(name, "test", [listed.instance_id])
    except (OSError, ValueError, KeyError) as error:
        raise InstanceError(
            f"{listed.instance_id}: its row could not be read from {name} ({type(error).__name__}: {error}). "
            "With no way to the hub, give a file with the rows by --dataset."
        ) from error
    return checked(dict(rows[0]))


def checked(row: dict[str, Any]) -> Instance:
    """A row as an instance (raises InstanceError that names every fault)."""
    name = row.get("instance_id", "a row without instance_id")
    missing = sorted({"image", "eval_script", "log_parser", "eval_type"} - set(row))
    if missing:
        raise InstanceError(
            f"{name}: the row has no {', '.join(missing)}: it is of the shape before swebench 5, which this "
            "version can't judge. Give rows of the newer shape by --dataset."
        )
    try:
        return Instance.model_validate(row)
    except (ValidationError, json.JSONDecodeError) as error:
        faults = error.errors() if isinstance(error, ValidationError) else [{"loc": (), "msg": str(error)}]
        told = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise InstanceError(f"{name}: {told}") from error
