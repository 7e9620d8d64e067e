"""The pytest plugin: options, markers, cases, fixtures and output. It only connects the other packages.

Modules that only a run needs are imported inside the hooks, so that loading the plugin is fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clawbench.pytest_plugin import hooks, modes, reporting, selection
from clawbench.pytest_plugin.fixtures import adapter, case, container
from clawbench.pytest_plugin.options import add_options
from clawbench.pytest_plugin.reporting import CASE, CONTEXT
from common.errors import ClawbenchError, NotReadyError, known_error

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from clawbench.controller.run_session import RunSession
    from clawbench.pytest_plugin.screen import Screen  # noqa: F401 - in a quoted type below
    from clawbench.run.model_choice import Choice
    from clawbench.run.settings import Settings

__all__ = ["adapter", "case", "container"]

SESSION = pytest.StashKey["RunSession"]()
NOT_READY = 12
"""Exit status: something that the run needs is not there: the engine, an account, a disk, the provider."""
_SELECTED = pytest.StashKey[int]()
_COLLECTED = pytest.StashKey[bool]()
"""Set when the collection has succeeded."""
_SETTINGS = pytest.StashKey[tuple["Settings", "Choice"]]()
_WORKER = "clawbench"
_DATASET = "clawbench_dataset"
_INDEX = pytest.StashKey[str | None]()
"""The file that lists the instances of `--dataset`."""
_SCREEN = pytest.StashKey["Screen"]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the suite's hooks."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the suite's options."""
    add_options(parser)
    if not pluginmanager.hasplugin("junitxml"):
        # the suite's pytest.ini sets this option, and with `-p no:junitxml` pytest would not know it
        parser.addini("junit_family", "has no effect unless pytest writes a JUnit report")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register claws and markers and resolve the selection; in a worker, load the run's settings."""
    option = config.option
    modes.refuse_artifacts(config)
    option.doctor = option.doctor or option.estimate
    config.pluginmanager.load_setuptools_entrypoints(hooks.ENTRY_POINTS)
    if option.gold:
        from clawbench.pytest_plugin import gold_plugin  # noqa: PLC0415 - see the module's docstring, here and below

        config.pluginmanager.register(gold_plugin, "clawbench.gold")
        modes.aim_at(config, modes.GOLD)
    if option.doctor:
        modes.aim_at(config, modes.RESOLVED)
    config.stash[_INDEX] = selection.list_dataset(config, getattr(config, "workerinput", {}).get(_DATASET))
    selection.know_claws(config.pluginmanager, selection.predictions(config).values())
    selection.select(config)
    if selection.means(config, selection.COLLECTION_STUDY):
        from tests_bench.collection_study import study_plugin  # noqa: PLC0415

        modes.aim_at(config, modes.COLLECTION_STUDY)
        study_plugin.register(config)
    if selection.means(config, selection.CONFORMANCE):
        from tests_bench.conformance import conformance_plugin  # noqa: PLC0415

        conformance_plugin.register(config)
    for name, meaning in selection.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    handed_over = getattr(config, "workerinput", {}).get(_WORKER)
    if handed_over is not None:
        from clawbench.controller.run_session import context_from  # noqa: PLC0415

        _take_context(config, context_from(handed_over, config.workerinput["workerid"]))  # type: ignore[attr-defined]
        from clawbench.pytest_plugin.screen import Interrupts  # noqa: PLC0415

        Interrupts()
    elif option.doctor:
        from clawbench.pytest_plugin import doctor_plugin  # noqa: PLC0415

        config.pluginmanager.register(doctor_plugin, "clawbench.doctor")
        modes.require_project(config)
        doctor_plugin.configure(config)
    elif _is_benchmark(config):
        from clawbench.pytest_plugin import conclusion, report_files, run_settings, workers  # noqa: PLC0415

        modes.require_project(config)
        config.stash[_SETTINGS] = run_settings.settings_from(config)
        settings, _ = config.stash[_SETTINGS]
        report_files.place(config, settings.artifacts / settings.run_id)
        workers.add_workers(config, settings)
        conclusion.watch_for(config)


def _take_context(config: pytest.Config, context: Any) -> None:
    """Prepare this process for running cases."""
    from clawbench.pytest_plugin.scheduling import CaseScheduling  # noqa: PLC0415

    config.stash[CONTEXT] = context
    config.pluginmanager.register(CaseScheduling(config), "clawbench-scheduling")


def _is_benchmark(config: pytest.Config) -> bool:
    """Whether this process is the controller of a run."""
    option = config.option
    if hasattr(config, "workerinput") or option.collectonly or option.help or option.version or option.doctor:
        return False
    if getattr(option, "markers", False) or getattr(option, "showfixtures", False):
        return False
    if modes.named(config) == [modes.COLLECTION_STUDY]:
        return False
    return _means_the_benchmark(config)


def _means_the_benchmark(config: pytest.Config) -> bool:
    suite = modes.SUITE
    return any(path == suite or suite in path.parents or path in suite.parents for path in modes.named(config))


@contextmanager
def _ending_the_command(config: pytest.Config) -> Iterator[None]:
    """End the command with an error's message, if it is one of the suite's own.

    A wrong request is a usage error. If the engine, a disk, the provider or the account is not ready, the exit status
    is `NOT_READY`.
    """
    try:
        yield
    except pytest.UsageError:
        raise
    except Exception as error:
        known = known_error(error) or (error if isinstance(error, OSError) else None)
        if known is None:
            raise
        if isinstance(known, NotReadyError):
            _writer(config)(f"ERROR: {known}")
            pytest.exit("nothing was run", NOT_READY)
        raise pytest.UsageError(str(known)) from error


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Open or resume the run before any worker starts."""
    config = session.config
    if _SETTINGS not in config.stash:
        return
    from clawbench.controller.run_session import RunSession  # noqa: PLC0415
    from clawbench.pytest_plugin.screen import Interrupts, Screen  # noqa: PLC0415
    from clawbench.pytest_plugin.workers import described, is_distributed  # noqa: PLC0415

    is_gold = config.option.gold
    selection.check_markers(config)
    claws = [] if is_gold else selection.selection(config).claws
    if not claws and not is_gold:
        raise pytest.UsageError(
            "no claw is installed: run `clawbench install nanobot`; `clawbench claws` lists all"
        )
    settings, choice = config.stash[_SETTINGS]
    with _ending_the_command(config):
        opened, swept = RunSession.open(settings, choice, claws, is_gold=is_gold)
    config.stash[SESSION] = opened
    config.pluginmanager.register(_CaseEnds(opened))
    screen = config.stash[_SCREEN] = Screen(config, opened)
    config.pluginmanager.register(screen)
    Interrupts(screen, settings.run_id)
    write = _writer(config)
    distributed = opened.has_workers = is_distributed(config)
    _take_context(config, opened.context("main", None if distributed else write))
    for name in swept:
        write(f"removed a leftover of a run that has ended: {name}")
    for line in [*opened.warnings(), *opened.opening()]:
        write(line)
    if distributed:
        write(described(opened.settings))


class _CaseEnds:
    """Updates the predictions as cases end."""

    def __init__(self, session: RunSession) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test ended, in any process."""
        if report.when == "teardown":
            self._session.log.case_ended()


def _writer(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line to the user's terminal, past pytest's capture."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")

    def write(line: str) -> None:
        if terminal is None:
            return
        with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
            terminal.ensure_newline()
            terminal.write_line(line)

    return write


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Send the run's settings to a worker of pytest-xdist."""
    node.workerinput[_DATASET] = node.config.stash[_INDEX]
    session = node.config.stash.get(SESSION, None)
    if session is not None:
        node.workerinput[_WORKER] = session.handed_over()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Never look into a run's folder; collect gold and the conformance suite only if the command asks for them."""
    if modes.is_of_a_run(collection_path):
        return True
    if collection_path.parent.name != modes.SUITE.name:
        return None
    path = collection_path.resolve()
    if path == modes.GOLD and not config.option.gold:
        return True
    if path == modes.CONFORMANCE and not selection.means(config, selection.CONFORMANCE):
        return True
    if path == modes.COLLECTION_STUDY and not selection.means(config, selection.COLLECTION_STUDY):
        return True
    return True if config.option.gold and path == modes.RESOLVED else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases."""
    if "case" in metafunc.fixturenames and modes.SUITE in metafunc.definition.path.resolve().parents:
        selection.parametrize(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the command does not select, and sort the rest into run order."""
    selection.narrow(config, items)
    if CONTEXT in config.stash:
        order = config.stash[CONTEXT].order

        def place(item: pytest.Item) -> tuple[bool, float, str]:
            case_id = selection.case_of_item(item)
            return order.place(case_id) if case_id is not None else (False, 0.0, "")

        items.sort(key=place)
    config.stash[_COLLECTED] = True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Check that the selected cases can be run, before the first one begins."""
    if _COLLECTED not in session.config.stash:
        session.items.clear()  # the collection failed: pytest says why, and nothing else happens
        session.config.stash[_SELECTED] = 0
        return
    _check_selection(session.config, [item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController, ids: Sequence[str]) -> None:
    """Do the same check with workers: then the controller itself does not collect."""
    _check_selection(node.config, ids)


def _check_selection(config: pytest.Config, ids: Sequence[str]) -> None:
    is_known = _SELECTED in config.stash  # each worker collects, and so does each replacement
    config.stash[_SELECTED] = len(ids)
    session = config.stash.get(SESSION, None)
    if session is None or is_known:
        return
    from clawbench.pytest_plugin import doctor_plugin, images_plugin  # noqa: PLC0415

    config.stash[_SCREEN].expect(len(ids))
    selected = [found for node_id in ids if (found := selection.case_of(node_id))]
    write = _writer(config)
    with _ending_the_command(config):
        instances = selection.instances_of(ids)
        left = session.select(selected, instances)
        if selected:
            for line in session.broken_environments(selected):
                write(line)
            doctor_plugin.check_before_run(config, session, selected, write)
        if left or any(map(selection.is_of_conformance, ids)):
            session.start_gateway()
        if selected:
            session.log.begin(selected, _asked(config), resume=session.settings.resume, left=left)
        if instances:
            images_plugin.keep_images(config, session, ids, write)


def _asked(config: pytest.Config) -> dict[str, Any]:
    """The selection options and the number of workers, for the journal; without local paths."""
    option = config.option
    told = {
        "claws": option.claw,
        "sets": option.set,
        "keyword": option.keyword,
        "markers": option.markexpr,
        "tests": [argument.partition("::")[2] for argument in config.args if "::" in argument],
        "instances": Path(option.instances).name if option.instances else "",
        "workers": len(getattr(option, "tx", None) or ()),
    }
    return {name: value for name, value in told.items() if value}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Change a case's report according to its outcome."""
    report = yield
    reporting.amend(item, call, report)
    found = item.stash.get(CASE, None)
    if found is not None and report.when == "teardown":  # JUnit and the JSON report take properties from this one
        with suppress(OSError, ClawbenchError):  # if a file can't be read, the case's own error says so
            report.user_properties[:] = reporting.properties(found, found.folder.metadata())
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Write the report files and the end of the command to the journal, or print why that failed."""
    opened = session.config.stash.get(SESSION, None)
    if isinstance(sys.exc_info()[1], KeyboardInterrupt):
        # a second Ctrl-C came before pytest had noted the first one
        session.exitstatus = pytest.ExitCode.INTERRUPTED
    if opened is None:
        yield
        return
    from clawbench.pytest_plugin import conclusion, report_files  # noqa: PLC0415

    if not session.config.stash.get(_SELECTED, 0):
        with _printed(session, "the reports"), report_files.unchanged(session.config):
            yield
        return
    if not session.config.option.gold:
        with _printed(session, "the reports"):
            conclusion.conclude(session, opened.run, opened.selected)
    with _printed(session, "the reports"):
        yield
        report_files.clean(session.config)
    with _printed(session, "the run's records"):
        interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
        opened.log.end(int(session.exitstatus), interrupted=interrupted)


@contextmanager
def _printed(session: pytest.Session, what: str) -> Iterator[None]:
    """If a file can't be written, print the error and make the command fail."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and known_error(error) is None:
            raise
        _writer(session.config)(f"{what} could not be written: {known_error(error) or error}")
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Generator[None]:
    """Print the tables, the costs, the warnings and what to do next, below pytest's own list of failures."""
    session = config.stash.get(SESSION, None)
    if session is None:
        yield
    else:
        with reporting.shortened(terminalreporter, session.run.run_id):
            yield
    if config.stash.get(_SELECTED, None) == 0 and _means_the_benchmark(config):
        terminalreporter.write_line(selection.why_nothing(config))
    if session is not None:
        _print_result(terminalreporter, config, session)


def _print_result(terminal: pytest.TerminalReporter, config: pytest.Config, session: RunSession) -> None:
    from clawbench.pytest_plugin import conclusion  # noqa: PLC0415
    from clawbench.pytest_plugin.attempts import retry_lines  # noqa: PLC0415

    if config.option.gold:
        from clawbench.pytest_plugin import gold_plugin  # noqa: PLC0415

        tables = gold_plugin.tables(session.run.path)
    else:
        tables = conclusion.tables(config, session.run)
    terminal.section(f"run {session.run.run_id}")
    lines = [
        *tables,
        *retry_lines(config.stash[CONTEXT]),
        *conclusion.left_open(config, session.run, session.selected),
        *session.money(),
        *session.warnings(),
        *session.kept(),
    ]
    for line in lines:
        terminal.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Release all resources, whatever happened."""
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.close()
