"""The hook by which claws from outside the tree come in; any pytest plugin may implement it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from adapters.base import Adapter


@pytest.hookspec
def pytest_clawbench_adapters() -> Iterable[Adapter]:  # type: ignore[empty-body]
    """The claws that a plugin brings along: instances of classes that fit `adapters.base.Adapter`.

    It is called once in every process, before collection, and must give the same claws in each. A claw's name is
    `[a-z][a-z0-9_]*` and its own; one that is taken, or an adapter that does not fit, ends the command with a
    message. `docs/adding-a-claw.md` has an example.
    """
