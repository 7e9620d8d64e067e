"""The hook with which any pytest plugin can add claws of its own."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from adapters.base import Adapter


@pytest.hookspec
def pytest_clawbench_adapters() -> Iterable[Adapter]:  # type: ignore[empty-body]
    """The claws that a plugin adds: instances of classes that implement `adapters.base.Adapter`.

    It is called once in every process, before collection, and must return the same claws in each. A claw's name
    matches `[a-z][a-z0-9_]*` and is unique. A name that is taken, or an invalid adapter, ends the command with a
    message. `docs/adding-a-claw.md` has an example.
    """


ENTRY_POINTS = "clawbench"
"""The group of entry points in which an installed package names a module with the hook.

It is not pytest's own group, `pytest11`: every pytest of the environment loads those packages, and in other projects
pytest would fail because it does not know the hook.
"""
