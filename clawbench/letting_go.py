"""The part of the pytest plugin that keeps memory small: pytest holds every item and every report to the end.

There may be thousands of cases, each with a row and a prompt that may be large: a case is let go when it is over.
What must be held, because pytest makes its report files at the end of the session, is held packed (`_Files`).
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import pytest
from _pytest.junitxml import xml_key

from clawbench.reporting import CASE
from clawbench.selection import case_of


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a case go when it is over."""
    result = yield
    if CASE in item.stash:
        del item.stash[CASE]
        vars(item).pop("repr_failure", None)  # ours, which explains the case
    return result


_NO_KEYWORDS: Mapping[str, Literal[1]] = MappingProxyType({})


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> Generator[None]:
    """Let go of what a report says beside its outcome when all have taken it over: the terminal holds it on."""
    yield
    if case_of(report.nodeid) is not None and not report.skipped:
        report.user_properties, report.keywords = [], _NO_KEYWORDS
        vars(report).pop("_json_report_extra", None)


class _Terminal:
    """Lets pytest's terminal forget the setups and teardowns that passed and said nothing.

    It keeps their reports in a category without a name that no total counts. At the end it looks through all of
    them for each case that failed, for what a teardown may have printed: with thousands, that takes seconds.
    A worker's terminal, which nobody sees, forgets them all.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager
        self._is_seen = not hasattr(config, "workerinput")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._plugins.get_plugin("terminalreporter")
        if terminal is None or case_of(report.nodeid) is None:
            return
        kept = terminal.stats.get("", [])
        if not self._is_seen:
            terminal.stats.clear()
        elif kept and kept[-1] is report and not report.sections:
            kept.pop()


class _Files:
    """Has JUnit and the JSON report hold cases that are over packed: 1 KiB for one, in place of about 20.

    Both make a tree of small objects of each case, which they write at the end of the session.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._looked_at = 0
        self._open: list[Any] = []
        """What JUnit has begun and not ended."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Pack what is over."""
        yield
        if report.when == "teardown" and case_of(report.nodeid) is not None:
            self._pack_in_junit()
            self._pack_in_json(report.nodeid)

    def _pack_in_junit(self) -> None:
        junit = self._config.stash.get(xml_key, None)
        if junit is None:
            return
        begun = junit.node_reporters_ordered
        self._open += begun[self._looked_at :]
        self._looked_at = len(begun)
        for reporter in self._open:
            if vars(reporter).keys() == {"to_xml"}:  # all that is left of one that has ended
                reporter.to_xml = partial(_unpacked, _packed(reporter.to_xml()))
        self._open = [reporter for reporter in self._open if vars(reporter).keys() != {"to_xml"}]

    def _pack_in_json(self, test_id: str) -> None:
        report = getattr(self._config, "_json_report", None)
        if report is not None:
            whole = _whole(report._json_tests[test_id])
            # the outcome is what the plugin counts
            report._json_tests[test_id] = {"outcome": whole["outcome"], _PACKED: _packed(whole)}

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        """Unpack all, as they are written."""
        if "tests" in json_report:
            json_report["tests"] = [_whole(test) for test in json_report["tests"]]


_PACKED = "clawbench_packed"


def _whole(test: dict[str, Any]) -> dict[str, Any]:
    """A test of the JSON report, with what was said of it after it had been packed."""
    packed = test.get(_PACKED)
    if packed is None:
        return test
    return {**_unpacked(packed), **{name: value for name, value in test.items() if name != _PACKED}}


def _packed(value: object) -> bytes:
    return zlib.compress(pickle.dumps(value), 1)


def _unpacked(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))  # noqa: S301 - it never left this process


def pytest_configure(config: pytest.Config) -> None:
    """See that pytest's own plugins, too, let cases go."""
    config.pluginmanager.register(_Terminal(config))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Files(config))
