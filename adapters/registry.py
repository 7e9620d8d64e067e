"""The claws by name.

All five names are known from the start, in one order that every worker shares. A claw without an adapter
is said to be without one; nothing here pretends to run it.
"""

from __future__ import annotations

from adapters.base import Adapter, BadOptionError, NotInstalledError
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
"""Every claw's name, in the order of reports and test ids."""


def adapter(name: str) -> Adapter:
    """The adapter of a claw.

    Raises:
        NotInstalledError: the name is known, but this version has no adapter for it.
        BadOptionError: no claw has that name.
    """
    if name not in CLAWS:
        raise BadOptionError(f"there is no claw named {name!r}; the claws are {', '.join(CLAWS)}")
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
