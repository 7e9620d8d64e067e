"""The claws by name.

The suite's own five come first, in one order that every worker shares; claws from outside the tree follow, once
they are registered. A claw's package is imported only when its adapter is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import cast

from adapters.base import Adapter, BadOptionError, NotInstalledError
from common.errors import ClawbenchError

_ADAPTERS = {
    "openclaw": "OpenclawAdapter",
    "hermes": "HermesAdapter",
    "nanobot": "NanobotAdapter",
    "zeroclaw": "ZeroclawAdapter",
    "generic": "GenericAdapter",
}
"""The adapter's class by claw, in `adapters.<claw>.<claw>_adapter`."""

CLAWS: tuple[str, ...] = tuple(_ADAPTERS)
"""The suite's own claws, in the order of reports and test ids."""

_RESERVED = ("all", "and", "not", "or", "gold", "checks", "earlier_attempts", "requests")
"""Words with a meaning of their own on the command line, and folders of a run that belong to no claw."""

_outside: dict[str, Adapter] = {}


class BadAdapterError(ClawbenchError, ValueError):
    """An adapter from outside the tree can't be registered; the message says which and why."""


def claws() -> tuple[str, ...]:
    """Every claw's name: the suite's own, then those from outside the tree in alphabetical order."""
    return (*CLAWS, *sorted(_outside))


def know_outside(candidates: Iterable[object], reserved: Iterable[str] = ()) -> None:
    """Register adapters from outside the tree; those registered before are forgotten.

    Args:
        candidates: objects that should be adapters.
        reserved: names that no claw may have.

    Raises:
        BadAdapterError: one does not fit the protocol, its name is taken, or it brings a prompt of its own.
    """
    _outside.clear()
    for candidate in candidates:
        from adapters.adapter_check import misfits  # noqa: PLC0415 - imports pydantic, and few runs need it

        where = f"{type(candidate).__module__}.{type(candidate).__qualname__}"
        if faults := misfits(candidate):
            raise BadAdapterError(f"{where} is not an adapter: {'; '.join(faults)}")
        found = cast(Adapter, candidate)
        if found.name in (*CLAWS, *_outside, *_RESERVED, *reserved):
            raise BadAdapterError(f"{where}: the name {found.name!r} is taken; give the claw another")
        prompts = {adapter(name).prompt_file for name in CLAWS}
        if found.prompt_file not in prompts:
            raise BadAdapterError(
                f"{where}: prompt_file is {found.prompt_file!r}, but all claws get the same words: "
                + " or ".join(sorted(prompts))
            )
        _outside[found.name] = found


def adapter(name: str) -> Adapter:
    """The adapter of a claw.

    Raises:
        BadOptionError: no claw has that name.
    """
    if name in _outside:
        return _outside[name]
    if name not in _ADAPTERS:
        raise BadOptionError(f"there is no claw named {name!r}; the claws are {', '.join(claws())}")
    found: Adapter = getattr(import_module(f"adapters.{name}.{name}_adapter"), _ADAPTERS[name])()
    return found


def installed(name: str) -> bool:
    """Whether a claw can run here; reads a few directory entries and starts nothing.

    Raises:
        BadOptionError: no claw has that name.
    """
    try:
        adapter(name).runtime()
    except NotInstalledError:
        return False
    return True
