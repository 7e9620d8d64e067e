"""Every private name of pytest and pytest-xdist that the suite uses, each with the reason.

No other module may use private names. `tests/unit/test_private_names.py` checks each against the installed versions,
whose range `pyproject.toml` pins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO

import pytest
from _pytest.mark.expression import Expression
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


def run_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Run a test and return its reports without sending them.

    The reports of a retry must replace those of the attempt before it, and pytest has no public way to run a test
    without reporting it.
    """
    return runtestprotocol(item, log=False, nextitem=nextitem)


def compile_expression(text: str) -> Callable[[Callable[[str], bool]], bool]:
    """A `-k` or `-m` expression, to be evaluated with a function that says which names apply.

    The run's claws must be known before collection, and only pytest can say what an expression means.

    Raises:
        SyntaxError: the expression is malformed.
    """
    expression = Expression.compile(text)
    # a mark's keyword arguments (`-m "mark(name=1)"`) mean nothing here: the suite's marks have none
    return lambda applies: expression.evaluate(lambda name, /, **_: applies(name))


def lacks_workers(config: pytest.Config) -> bool:
    """Whether pytest-xdist ended the command early, because more workers died than may be replaced.

    pytest-xdist says so only in the text that it prints.
    """
    return bool(getattr(config.pluginmanager.get_plugin("dsession"), "_summary_report", None))


def print_to(terminal: pytest.TerminalReporter, wrapped: Callable[[TextIO], TextIO]) -> Callable[[], None]:
    """Let what pytest and pytest-xdist print pass through another file, as a live line shares the terminal with it.

    Args:
        terminal: pytest's.
        wrapped: makes that file from pytest's own.

    Returns:
        a function that undoes it.
    """
    writer = terminal._tw
    before = writer._file
    writer._file = wrapped(before)
    return lambda: setattr(writer, "_file", before)


def pid_of(node: WorkerController) -> int:
    """The process id of a worker; execnet offers it nowhere else."""
    return int(node.gateway._rinfo().pid)


def take_one_at_a_time(session: pytest.Session) -> None:
    """Make a worker run each test as soon as it gets it, without knowing the next one.

    pytest-xdist's worker begins a test only when it has the next one as well. A case may take an hour, and the next
    case would wait at this worker while others are idle. No option changes that.

    Args:
        session: of the worker, before its first test.
    """
    plugins: Iterable[Any] = session.config.pluginmanager.get_plugins()
    worker = next(plugin for plugin in plugins if hasattr(plugin, "run_one_test"))

    def run_one_test() -> None:
        worker.item_index = worker.nextitem_index
        item = session.items[worker.item_index]
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        worker.sendevent("runtest_protocol_complete", item_index=worker.item_index, duration=0)
        if not (session.shouldfail or session.shouldstop):
            worker.nextitem_index = worker.torun.get()

    worker.run_one_test = run_one_test
