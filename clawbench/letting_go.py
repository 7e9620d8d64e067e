"""The part of the pytest plugin that keeps memory small: pytest holds every item and every report to the end.

There may be thousands of cases, each with a row and a prompt that may be large.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from clawbench.reporting import CASE
from clawbench.selection import case_of


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a case go when it is over."""
    result = yield
    if CASE in item.stash:
        del item.stash[CASE]
        item.user_properties = []
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> Generator[None]:
    """Let a case's figures go when JUnit and the JSON report have taken them over."""
    yield
    if report.user_properties and case_of(report.nodeid) is not None:
        report.user_properties = []


class _Terminal:
    """Lets pytest's terminal forget the setups and teardowns that passed and said nothing.

    It keeps their reports in a category without a name that no total counts. At the end it looks through all of
    them for each case that failed, for what a teardown may have printed: with thousands, that takes seconds.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._plugins.get_plugin("terminalreporter")
        kept = terminal.stats.get("", []) if terminal is not None else []
        if kept and kept[-1] is report and not report.sections and case_of(report.nodeid) is not None:
            kept.pop()


def pytest_configure(config: pytest.Config) -> None:
    """See that the terminal, too, lets cases go."""
    config.pluginmanager.register(_Terminal(config))
