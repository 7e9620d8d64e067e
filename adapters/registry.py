"""The claws by name.

All five names are known from the start, in one order that every worker shares. A claw without an adapter
is said to be without one; nothing here pretends to run it.
"""

from __future__ import annotations

from adapters.base import Adapter, BadOptionError, NotInstalledError
from adapters.nanobot import NanobotAdapter

CLAWS: tuple[str, ...] = ("openclaw", "hermes", "nanobot", "zeroclaw", "generic")
"""Every claw's name, in the order of reports and test ids."""

_ADAPTERS: dict[str, type[Adapter]] = {"nanobot": NanobotAdapter}


def adapter(name: str) -> Adapter:
    """The adapter of a claw.

    Raises:
        NotInstalledError: the name is known, but this version has no adapter for it.
        BadOptionError: no claw has that name.
    """
    if name not in CLAWS:
        raise BadOptionError(f"there is no claw named {name!r}; the claws are {', '.join(CLAWS)}")
    if name not in _ADAPTERS:
        raise NotInstalledError(
            f"this version of clawbench has no adapter for {name} yet, so it can't be installed or run; "
            f"what can be run: {', '.join(_ADAPTERS)}"
        )
    return _ADAPTERS[name]()


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
