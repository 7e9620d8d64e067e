"""Whether an object from outside the tree fits the adapter protocol, checked before anything runs.

The checks find what would otherwise break in the middle of a case: something is missing, has the wrong type, or
can't be called as the suite calls it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from adapters.base import APIS, Adapter

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MEMORY = re.compile(r"\d+[bkmg]", re.IGNORECASE)


def misfits(candidate: object) -> list[str]:
    """Why an object is not an adapter, each reason in a few words; [] if it is one."""
    if isinstance(candidate, type):
        return ["it is a class, not an instance of one"]
    return [*_wrong_values(candidate), *_wrong_methods(candidate)]


@cache
def _values() -> dict[str, TypeAdapter[Any]]:
    """The protocol's class variables, each with a validator of its values."""
    return {name: TypeAdapter(get_args(hint)[0]) for name, hint in get_type_hints(Adapter).items()}


def _wrong_values(candidate: object) -> Iterator[str]:
    for name, reader in _values().items():
        if not hasattr(candidate, name):
            if not hasattr(Adapter, name):  # it has no default
                yield f"it has no {name}"
            continue
        value = getattr(candidate, name)
        try:
            reader.validate_python(value, strict=True)
        except ValidationError as error:
            yield f"{name}: {error.errors()[0]['msg']}"
            continue
        if name == "name" and not _NAME.fullmatch(value):
            yield f"name: {value!r} is not of the form [a-z][a-z0-9_]*"
        if name == "min_memory" and not _MEMORY.fullmatch(value):
            yield f"min_memory: {value!r} is not an amount of memory such as 512m"
        if name == "apis" and (not value or not set(value) <= set(APIS)):
            yield f"apis: {value!r} is not one or more of {', '.join(APIS)}"


def _wrong_methods(candidate: object) -> Iterator[str]:
    for name, wanted in inspect.getmembers(Adapter, inspect.isfunction):
        if name.startswith("_"):
            continue
        method = getattr(candidate, name, None)
        if not callable(method) or getattr(method, "__func__", None) is wanted:
            yield f"it has no {name}()"
            continue
        arguments = list(inspect.signature(wanted).parameters)[1:]
        try:
            inspect.signature(method).bind(*arguments)
        except TypeError:
            yield f"{name}() can't be called with ({', '.join(arguments)})"
