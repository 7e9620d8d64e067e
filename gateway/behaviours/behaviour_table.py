"""The scripted models by name. Cheap to import: `pytest --help` lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from gateway.behaviours import broken_provider, edits, probes
from gateway.behaviours.base import Behaviour

PREFIX = "scripted:"

BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {
        name: value
        for module in (edits, broken_provider, probes)
        for name, value in vars(module).items()
        if isinstance(value, Behaviour)
    }
)
"""The behaviour of a model named `scripted:<name>`; `about` is its line in help texts."""


_TYPIST = re.compile(r"typist\?error=(0(?:\.\d+)?|1(?:\.0+)?)(?:&seed=(\d{1,9}))?")


def parse_model(model: str) -> Behaviour:
    """The behaviour of a model, by its name.

    `typist` takes parameters, as in `scripted:typist?error=0.7&seed=1`.

    Raises:
        ValueError: it is not a known scripted model; the message lists the known ones.
    """
    name = model.removeprefix(PREFIX)
    if model.startswith(PREFIX) and (asked := _TYPIST.fullmatch(name)):
        return edits.typing(float(asked[1]), int(asked[2] or 0))
    if not model.startswith(PREFIX) or name not in BEHAVIOURS:
        known = ", ".join([*(PREFIX + known for known in BEHAVIOURS), f"{PREFIX}typist?error=0.7&seed=1"])
        raise ValueError(f"unknown model {model!r}; known are {known}")
    return BEHAVIOURS[name]
