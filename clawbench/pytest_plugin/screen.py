"""What the user sees while a run goes on, in place of pytest's own dots; and what Ctrl-C does."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

import pytest
from rich.file_proxy import FileProxy

from clawbench.controller.progress_printer import Kind, ProgressPrinter
from clawbench.controller.run_session import RunSession
from clawbench.pytest_plugin.private_names import print_to
from clawbench.pytest_plugin.selection import case_of

_ERASE, _SHOW_CURSOR = "\r\x1b[2K", "\x1b[?25h"


class Screen:
    """A plugin of the controller that shows how the run goes on. With `-q` it shows nothing."""

    def __init__(self, config: pytest.Config, session: RunSession) -> None:
        """Show nothing before the first test begins.

        Args:
            config: the controller's. Nothing may be captured at this moment.
            session: the run.
        """
        self._terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._session = session
        # a file of its own, because pytest redirects the standard output while a test runs
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1, encoding="utf-8", errors="replace")
        self._printer = ProgressPrinter(
            session.run,
            self._out,
            has_price=session.knows_price,
            passed="passed" if config.option.gold else "resolved",
            every_case=config.get_verbosity() > 0,
        )
        self._is_quiet = self._terminal is None or config.get_verbosity() < 0
        self._has_begun = False
        self._give_back: Callable[[], None] = lambda: None

    def expect(self, total: int) -> None:
        """The command has selected so many tests."""
        self._printer.total = total

    def say_at_once(self, line: str) -> None:
        """Print a line from a signal handler, where no lock may be taken and no buffer used."""
        erase = _ERASE if self._printer.is_live else ""
        os.write(self._out.fileno(), f"{erase}{line}\n".encode())

    def show_cursor(self) -> None:
        """Show the terminal's cursor again, before the process is ended without cleaning up."""
        if self._printer.is_live:
            os.write(self._out.fileno(), _SHOW_CURSOR.encode())

    def _begin(self) -> None:
        if self._has_begun or self._is_quiet:
            return
        self._has_begun = True
        self._terminal.showfspath = False
        self._end_line()
        if self._printer.is_live:
            self._give_back = print_to(self._terminal, lambda file: FileProxy(self._printer.console, file))  # type: ignore[arg-type, return-value]
        self._printer.start()

    def _end_line(self) -> None:
        self._terminal.ensure_newline()
        self._terminal.flush()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, tuple[str, str, str]]:
        """Let pytest count a test, and print neither a dot nor a word."""
        category, _, _ = yield
        return category, "", ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        self._begin()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test as soon as it is clear how it ended."""
        kind = _kind(report)
        if kind is None or self._is_quiet:
            return
        self._begin()
        self._end_line()
        case_id = case_of(report.nodeid)
        is_new = case_id is None or str(case_id) not in self._session.order.finished
        self._printer.ended(report.nodeid, kind, case_id, is_new=is_new)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        """The rest of the screen is pytest's again."""
        self._printer.stop()
        self._give_back()
        return (yield)


def _kind(report: pytest.TestReport) -> Kind | None:
    """How a report counts; None if it leaves open how its test ended."""
    if report.when == "call":
        return report.outcome
    if report.failed:
        return "error"
    return "skipped" if report.skipped else None


class Interrupts:
    """Handles Ctrl-C, and SIGTERM, which services and CI systems send, in the same way."""

    def __init__(self, screen: Screen | None = None, run_id: str = "") -> None:
        """Take over both signals.

        Args:
            screen: the controller's; None in a worker, which ends with its controller and prints nothing.
            run_id: the run to resume.
        """
        self._screen = screen
        self._run_id = run_id
        self._count = 0
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handle)
            signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1:
            if self._screen is not None:
                self._screen.say_at_once(
                    "ending: removing containers and writing reports; the same command with "
                    f"--run-id={self._run_id} resumes"
                )
            raise KeyboardInterrupt
        if self._screen is None:
            return
        if self._count == 2:
            self._screen.say_at_once("still ending; Ctrl-C once more ends at once, and the next run cleans up")
            return
        self._screen.show_cursor()
        os._exit(int(pytest.ExitCode.INTERRUPTED))
