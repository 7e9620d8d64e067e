"""The rows of instances: what a case needs to know about its task, checked before any money is spent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from common.errors import LastingError
from evaluation.lists import ListedInstance

NEWER_COLUMNS = ("image", "eval_script", "log_parser", "eval_type")
"""The columns that rows have since swebench 5; before, the harness itself knew this for each repository."""


class InstanceError(LastingError):
    """Rows are missing, malformed, or of a shape that can't be judged here; the message lists every fault."""


class Instance(BaseModel):
    """One row, of either generation; columns that the suite does not use are kept for the harness."""

    model_config = ConfigDict(extra="allow", frozen=True)

    instance_id: str
    repo: str
    base_commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    problem_statement: str
    patch: str
    """The gold patch: for checks of the environment and for the scripted model, never for a claw."""
    test_patch: str
    version: str
    FAIL_TO_PASS: list[str]
    PASS_TO_PASS: list[str]
    image: str | None = None
    eval_script: str | None = None
    log_parser: str | None = None
    eval_type: str | None = None

    @property
    def is_older(self) -> bool:
        """Whether it is of the shape before swebench 5."""
        return self.eval_script is None

    @property
    def digest(self) -> str:
        """A digest of the whole row."""
        return sha256(self.model_dump_json().encode()).hexdigest()

    def for_harness(self) -> dict[str, Any]:
        """The row in the form that the official harness expects."""
        return self.model_dump(mode="json", exclude=set(NEWER_COLUMNS) if self.is_older else None)

    @field_validator("FAIL_TO_PASS", "PASS_TO_PASS", mode="before")
    @classmethod
    def _parsed(cls, value: object) -> object:
        """Datasets ship the lists as JSON strings."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            if value.startswith("['"):
                raise ValueError("a list as Python prints it: write it as JSON, with double quotes") from error
            raise ValueError(f"bad JSON: {error}") from error

    @field_validator("version", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return str(value) if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _has_tests(self) -> Instance:
        if not self.FAIL_TO_PASS:
            # the harness resolves such a row for any patch
            raise ValueError("FAIL_TO_PASS is empty: any patch would count as resolving it")
        missing = [name for name in NEWER_COLUMNS if getattr(self, name) is None]
        if missing and len(missing) < len(NEWER_COLUMNS):
            raise ValueError(f"{', '.join(missing)}: missing, although the row has other columns of swebench 5")
        return self


def checked(row: Mapping[str, Any], listed: ListedInstance | None = None) -> Instance:
    """Check a row.

    Args:
        row: as it was read.
        listed: what the instance lists say of it, with which it must agree.

    Raises:
        InstanceError: the row is malformed; the message lists every fault.
    """
    name = row.get("instance_id", "a row without instance_id")
    try:
        instance = Instance.model_validate(row)
    except ValidationError as error:
        raise InstanceError(f"{name}: {'; '.join(_told(fault) for fault in error.errors())}") from error
    if listed is not None:
        told = {"instance_id": listed.instance_id, "repo": listed.repo}
        if listed.base_commit_from == "published":
            told["base_commit"] = listed.base_commit or instance.base_commit
        wrong = [
            f"{column} is {getattr(instance, column)}, the instance list has {value}"
            for column, value in told.items()
            if getattr(instance, column) != value
        ]
        if wrong:
            raise InstanceError(f"{name}: {'; '.join(wrong)}")
    return instance


def _told(fault: Mapping[str, Any]) -> str:
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else str(fault["msg"])


def load_instance(listed: ListedInstance, *, demo: Path) -> Instance:
    """The row of an instance of the embedded set.

    Args:
        listed: from the instance lists.
        demo: the embedded task repo.

    Raises:
        InstanceError: there is no such task, or it is malformed.
    """
    return checked(read_task(demo / "tasks" / listed.instance_id), listed)


_TEXTS = {
    "patch": "gold.patch",
    "test_patch": "test.patch",
    "eval_script": "eval.sh",
    "problem_statement": "problem_statement.md",
}
"""The columns that are files of their own in a task's folder, as in swebench 5's `task/repo.py`."""


def read_task(folder: Path) -> dict[str, Any]:
    """Read a task's folder in a task repo of swebench 5 as a row, without checking it.

    swebench's own reader does the same, but takes seconds to import.

    Raises:
        InstanceError: the folder can't be read.
    """
    try:
        row = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
        tests = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
        if not isinstance(row, dict) or not isinstance(tests, dict):
            raise ValueError("task.yaml and tests.json must each hold a mapping")
        # as bytes, because line ends are part of a patch
        texts = {column: (folder / name).read_bytes().decode() for column, name in _TEXTS.items()}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InstanceError(f"{folder.name}: {error}") from error
    hints = folder / "hints.md"
    return {**row, **texts, "hints_text": hints.read_text("utf-8") if hints.is_file() else "", **tests}
