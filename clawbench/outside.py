"""Claws from outside the tree, where no pytest runs: what the plugins that pytest would load bring along.

Those are the installed ones, those that PYTEST_PLUGINS names, and those that a command names itself, as by `-p` of
pytest. A `conftest.py` is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from clawbench import hooks


def plugins_of_the_environment(named: Iterable[str] = ()) -> pytest.PytestPluginManager:
    """The plugins that may bring claws.

    Args:
        named: modules, for plugins that are not installed.

    Raises:
        ImportError: one of them can't be imported.
    """
    plugins = pytest.PytestPluginManager()
    plugins.add_hookspecs(hooks)
    plugins.set_blocked("clawbench.plugin")  # it brings no claws, and needs a whole pytest around it
    for name in named:
        plugins.import_plugin(name)
    plugins.load_setuptools_entrypoints("pytest11")
    plugins.consider_env()
    return plugins
