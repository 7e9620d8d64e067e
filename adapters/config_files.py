"""How a claw's config file is read and checked.

`claw_configs/<claw>/NAME.EXT` is in git; a user's own `NAME.local.EXT` beside it is ignored by git and preferred.
A file may set only what its model in the claw's config module declares. The suite itself sets the model's address
and name, the number of rounds, and the tools that reach out of the case; and no secret in a file that was once a
claw's real config gets into a container.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from adapters.base import BadOptionError

_PARSERS: dict[str, Callable[[str], Any]] = {"JSON": json.loads, "TOML": tomllib.loads, "YAML": yaml.safe_load}

Model = TypeVar("Model", bound=BaseModel)


class Settings(BaseModel):
    """Settings of a config file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CamelSettings(Settings):
    """Settings whose keys are written in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


def _load(file: Path) -> Any:
    """The content of a file; {} if it is empty."""
    kind = file.suffix[1:].upper()
    try:
        content = _PARSERS[kind](file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise BadOptionError(f"{file} is not valid {kind}") from error
    return {} if content is None else content


def load_object(file: Path) -> dict[str, Any]:
    """The object in a JSON, TOML or YAML file.

    Raises:
        BadOptionError: it can't be parsed, or is not an object.
    """
    content = _load(file)
    if not isinstance(content, dict):
        raise BadOptionError(f"{file} does not hold an object")
    return content


def read_settings(file: Path, kind: type[Model], *, ignore_unknown: bool = False) -> Model:
    """The settings in a config file.

    Args:
        file: it is JSON, TOML or YAML, by its suffix.
        kind: the model of the whole file.
        ignore_unknown: whether it may contain other things than settings.

    Raises:
        BadOptionError: it can't be parsed or sets something else; the message shows no value of it.
    """
    try:
        return kind.model_validate(_load(file), extra="ignore" if ignore_unknown else None)
    except ValidationError as error:
        faults: Any = error.errors()
        where = ".".join(str(part) for part in faults[0]["loc"])
        is_whole = any(fault["type"] == "extra_forbidden" for fault in faults)
        hint = " (a complete config of the claw's own is for --network own)" if is_whole else ""
        raise BadOptionError(f"{file}: {where or 'the file'}: {faults[0]['msg']}{hint}") from error
