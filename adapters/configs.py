"""A claw's config templates, and how a user's own version of one is found and checked.

`claw_configs/<claw>/NAME.EXT` is in git; `NAME.local.EXT` beside it is the user's, ignored by git and preferred.
A file may set only what its model in the claw's own module names: where the model is, which one, how many
rounds, and the tools that reach out of the case are the suite's, and no secret in a file that was once a claw's
real config gets into a container.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adapters.base import BadOptionError

CONFIGS = Path(__file__).parents[1] / "claw_configs"


def config_file(folder: Path, name: str) -> Path:
    """The config file in use: the user's own where there is one."""
    template = folder / name
    own = template.with_suffix(f".local{template.suffix}")
    return own if own.exists() else template


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Tell what is wrong with a config file, without showing a value of it.

    Raises:
        BadOptionError: pydantic refused what was read inside.
    """
    try:
        yield
    except ValidationError as error:
        first: Any = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadOptionError(f"{file}: {where or 'the file'}: {first['msg']}") from error
