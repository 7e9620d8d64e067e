"""The claws by name.

All five names are known from the start, in one order that every worker shares; claws from outside the tree come
after them, once they were made known. A claw without an adapter is said to be without one; nothing here pretends
to run it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from adapters.base import Adapter, BadOptionError, NotInstalledError
from adapters.fitting import misfits
from adapters.generic import GenericAdapter
from adapters.hermes import HermesAdapter
from adapters.nanobot import NanobotAdapter
from adapters.openclaw import OpenclawAdapter
from adapters.zeroclaw import ZeroclawAdapter

_ADAPTERS: dict[str, type[Adapter] | None] = {
    "openclaw": OpenclawAdapter,
    "hermes": HermesAdapter,
    "nanobot": NanobotAdapter,
    "zeroclaw": ZeroclawAdapter,
    "generic": GenericAdapter,
}
"""One entry per claw; None: it has no adapter yet."""

CLAWS: tuple[str, ...] = tuple(_ADAPTERS)
"""The suite's own claws, in the order of reports and test ids."""

_RESERVED = ("all", "and", "not", "or", "gold", "checks", "earlier_attempts")
"""Words that a command line means something else by, and folders of a run that are no claw's."""

_outside: dict[str, Adapter] = {}


class BadAdapterError(ValueError):
    """A claw from outside the tree can't be taken in; the message says which and why."""


def claws() -> tuple[str, ...]:
    """Every claw's name: the suite's own, then those from outside the tree by name."""
    return (*CLAWS, *sorted(_outside))


def know_outside(candidates: Iterable[object], reserved: Iterable[str] = ()) -> None:
    """Make claws from outside the tree known, in place of those that were before.

    Args:
        candidates: adapters, if they are.
        reserved: names that no claw may have.

    Raises:
        BadAdapterError: one does not fit the protocol, has a name that is taken, or brings a prompt of its own.
    """
    _outside.clear()
    prompts = {found.prompt_file for found in _ADAPTERS.values() if found is not None}
    for candidate in candidates:
        where = f"{type(candidate).__module__}.{type(candidate).__qualname__}"
        if faults := misfits(candidate):
            raise BadAdapterError(f"{where} is no adapter: {'; '.join(faults)}")
        found = cast(Adapter, candidate)
        if found.name in (*CLAWS, *_outside, *_RESERVED, *reserved):
            raise BadAdapterError(f"{where}: the name {found.name!r} is taken; give the claw another")
        if found.prompt_file not in prompts:
            raise BadAdapterError(
                f"{where}: prompt_file is {found.prompt_file!r}, but all claws get the same words: "
                + " or ".join(sorted(prompts))
            )
        _outside[found.name] = found


def adapter(name: str) -> Adapter:
    """The adapter of a claw.

    Raises:
        NotInstalledError: the name is known, but this version has no adapter for it.
        BadOptionError: no claw has that name.
    """
    if name in _outside:
        return _outside[name]
    if name not in CLAWS:
        raise BadOptionError(f"there is no claw named {name!r}; the claws are {', '.join(claws())}")
    found = _ADAPTERS[name]
    if found is None:
        can_be_run = ", ".join(claw for claw, known in _ADAPTERS.items() if known is not None)
        raise NotInstalledError(
            f"this version of clawbench has no adapter for {name} yet, so it can't be installed or run; "
            f"what can be run: {can_be_run}"
        )
    return found()


def installed(name: str) -> bool:
    """Whether a claw can be run here; reads a few directory entries and starts nothing.

    Raises:
        BadOptionError: no claw has that name.
    """
    try:
        adapter(name).runtime()
    except NotInstalledError:
        return False
    return True
