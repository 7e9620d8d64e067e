"""A claw's config templates, and how a user's own version of one is found and checked.

`claw_configs/<claw>/NAME.EXT` is in git; `NAME.local.EXT` beside it is the user's, ignored by git and preferred.
A file may set only what its model in the claw's own module names: where the model is, which one, how many
rounds, and the tools that reach out of the case are the suite's, and no secret in a file that was once a claw's
real config gets into a container.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adapters.base import BadOptionError

_UNKNOWN = "extra_forbidden"
CONFIGS = Path(__file__).parents[1] / "claw_configs"


def config_file(folder: Path, name: str) -> Path:
    """The config file in use: the user's own where there is one."""
    template = folder / name
    own = template.with_suffix(f".local{template.suffix}")
    return own if own.exists() else template


def read_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        BadOptionError: it is not JSON, or no object.
    """
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadOptionError(f"{file} is not JSON") from error
    if not isinstance(content, dict):
        raise BadOptionError(f"{file} is no object")
    return content


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Tell what is wrong with a config file, without showing a value of it.

    Raises:
        BadOptionError: pydantic refused what was read inside.
    """
    try:
        yield
    except ValidationError as error:
        faults: Any = error.errors()
        first = faults[0]
        where = ".".join(str(part) for part in first["loc"])
        is_whole = any(fault["type"] == _UNKNOWN for fault in faults)
        whole = " (a whole config of the claw's own is for --gateway off)" if is_whole else ""
        raise BadOptionError(f"{file}: {where or 'the file'}: {first['msg']}{whole}") from error
