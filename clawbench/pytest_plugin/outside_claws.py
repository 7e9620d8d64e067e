"""Finds the plugins that add claws, for commands that do not run pytest.

They come from installed packages, from modules that PYTEST_PLUGINS names, and from modules that the command names
itself, as with pytest's `-p`. A `conftest.py` is not read.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from clawbench.pytest_plugin import hooks
from clawbench.pytest_plugin.hooks import ENTRY_POINTS


def plugins_of_the_environment(named: Iterable[str] = ()) -> pytest.PytestPluginManager:
    """The plugins that may add claws.

    Args:
        named: modules, for plugins that are not installed.

    Raises:
        ImportError: one of them can't be imported.
    """
    plugins = pytest.PytestPluginManager()
    plugins.add_hookspecs(hooks)
    for name in named:
        plugins.import_plugin(name)
    plugins.load_setuptools_entrypoints(ENTRY_POINTS)
    plugins.consider_env()
    return plugins
