"""The pytest plugin: options, markers, cases, fixtures and what is shown. No logic of its own beyond wiring."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import pytest

from clawbench import conclusion, hooks, modes, report_files, reporting, selection
from clawbench.doctor import plugin as doctor
from clawbench.fixtures import BENCH, attempt, case
from clawbench.gold import plugin as gold
from clawbench.images import plugin as images
from clawbench.model_choice import Choice
from clawbench.options import add_options, settings_from
from clawbench.progress import ProgressPrinter
from clawbench.recordings import RecordingError, require_recordings
from clawbench.scheduling import attempts
from clawbench.scheduling.starting import OneAtFirst
from clawbench.scheduling.workers import add_workers, described, is_distributed
from clawbench.session import Session, bench_from
from clawbench.settings import Settings
from evaluation.harness import EvaluationError
from evaluation.instances import InstanceError
from records.plan import PlanError, PlannedCase
from records.run import RunDirectory, RunError
from workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["attempt", "case"]

_OWN = ("conformance.plugin", "letting_go", "scheduling.plugin", "scheduling.wire")
pytest_plugins = tuple(f"clawbench.{name}" for name in _OWN)

SESSION = pytest.StashKey[Session]()
_SELECTED = pytest.StashKey[int]()
_ASKED = pytest.StashKey[tuple[Settings, Choice]]()
_WORKER = "clawbench"


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the suite's hooks."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the suite's options."""
    add_options(parser)
    if not pluginmanager.hasplugin("junitxml"):
        # our pytest.ini sets it, and with `-p no:junitxml` nobody else knows it
        parser.addini("junit_family", "of no meaning without pytest's JUnit report")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Learn the claws; declare the markers; take over the controller's settings in a worker; else settle them."""
    config.pluginmanager.register(doctor, "clawbench.doctor")
    config.pluginmanager.register(gold, "clawbench.gold")
    if gold.is_meant(config):
        modes.aim_at(config, modes.GOLD)
    selection.know_claws(config.pluginmanager)
    selection.know_instances(config)
    for name, meaning in selection.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    handed_over = getattr(config, "workerinput", {}).get(_WORKER)
    if handed_over is not None:
        config.stash[BENCH] = bench_from(handed_over, config.workerinput["workerid"])  # type: ignore[attr-defined]
        _end_like_by_ctrl_c()
        return
    if doctor.is_meant(config):
        modes.require_project(config)
        modes.aim_at(config, modes.RESOLVED)
        doctor.configure(config)
    elif _is_benchmark(config):
        _write_reports_into_the_run(config)
        conclusion.watch_for(config)


def _end_like_by_ctrl_c() -> None:
    """At SIGTERM, which services and CI systems send, give everything back as at Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _is_benchmark(config: pytest.Config) -> bool:
    """Whether this process is the controller of a run."""
    option = config.option
    if hasattr(config, "workerinput") or option.collectonly or option.help or option.version or option.doctor:
        return False
    if getattr(option, "markers", False) or getattr(option, "showfixtures", False):
        return False
    return _means_the_benchmark(config)


def _means_the_benchmark(config: pytest.Config) -> bool:
    suite = modes.SUITE
    return any(path == suite or suite in path.parents or path in suite.parents for path in modes.named(config))


def _write_reports_into_the_run(config: pytest.Config) -> None:
    """JUnit and the JSON report go into the run's folder unless the command names other files."""
    modes.require_project(config)
    config.stash[_ASKED] = settings_from(config)
    settings, _ = config.stash[_ASKED]
    report_files.place(config, settings.artifacts / settings.run_id)
    add_workers(config, settings)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Take up the run before any worker starts."""
    config = session.config
    if not _is_benchmark(config):
        return
    claws = [] if gold.is_meant(config) else selection.wanted_claws(config)
    if not claws and not gold.is_meant(config):
        raise pytest.UsageError(
            "no claw is installed: run `clawbench install nanobot`; `clawbench claws` lists all"
        )
    settings, choice = config.stash[_ASKED]
    try:
        if gold.is_meant(config):
            gold.require_own_run(RunDirectory.named(settings.artifacts, settings.run_id))
        opened, swept = Session.open(settings, choice, claws)
    except (WorkspaceError, RunError) as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[SESSION] = opened
    config.pluginmanager.register(opened.state)
    _end_like_by_ctrl_c()
    write = _writer(config)
    distributed = is_distributed(config)
    # in this very process a step is told as it begins; of other processes only their files can be read
    config.stash[BENCH] = opened.bench("main", None if distributed else write)
    for name in swept:
        write(f"removed what a run that is gone left behind: {name}")
    for line in [*opened.warnings(), *opened.opening()]:
        write(line)
    if distributed:
        write(described(opened.settings))
        if opened.order.finished:
            config.pluginmanager.register(OneAtFirst(config, opened.order.finished))
        opened.show_progress(ProgressPrinter(opened.run.path, write))


def _writer(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line to the user's terminal, past pytest's capture of what tests print."""
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
    """Hand the run over to a worker of pytest-xdist."""
    session = node.config.stash.get(SESSION, None)
    if session is not None:
        node.workerinput[_WORKER] = session.handed_over()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases."""
    if "case" in metafunc.fixturenames:
        selection.parametrize(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases that the command means, in the order in which they are run."""
    selection.narrow(config, items)
    if BENCH in config.stash:
        config.stash[BENCH].order.arrange(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is selected is known: see that it can be run, before any of it is."""
    _check_selection(session.config, [item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController, ids: Sequence[str]) -> None:
    """The same where only the workers collect."""
    _check_selection(node.config, ids)


def _check_selection(config: pytest.Config, ids: Sequence[str]) -> None:
    known = _SELECTED in config.stash  # workers collect the same, and one that is replaced collects again
    config.stash[_SELECTED] = len(ids)
    session = config.stash.get(SESSION, None)
    if session is None or known:
        return
    selected = [found for node_id in ids if (found := selection.case_of(node_id))]
    try:
        if session.settings.recordings is not None:
            require_recordings(session.settings.recordings, selected)
        if instances := {name.listed for name in selected} | gold.instances_of(ids):
            session.take_rows(instances)
        if selected:
            gold.warn_of_broken(session, selected, _writer(config))
            doctor.before(config, session, selected, _writer(config))
            session.selected = [PlannedCase(name.claw, name.listed.instance_id, name.sample) for name in selected]
        left = sum(name.case_id not in session.order.finished for name in selected)
        if left or any(map(selection.is_of_conformance, ids)):
            session.start_gateway()
        if selected:
            session.state.begin(session.selected, config, resume=session.settings.resume, left=left)
        if instances:
            images.keep(config, session, ids, _writer(config))
    except (RecordingError, InstanceError, EvaluationError, PlanError, RunError, OSError) as error:
        raise pytest.UsageError(reporting.told(error)) from error


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a case by its outcome."""
    reporting.forestall(item, call)
    report = yield
    reporting.amend(item, call, report)
    found = item.stash.get(reporting.CASE, None)
    if found is not None and report.when == "teardown":  # the one that JUnit and the JSON report take them from
        with suppress(OSError):  # of a file that can't be read the case's own error tells
            report.user_properties[:] = reporting.properties(found, found.folder.metadata())
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Write the report files and how the run stands, or say why they could not be."""
    opened = session.config.stash.get(SESSION, None)
    if isinstance(sys.exc_info()[1], KeyboardInterrupt):
        # a second Ctrl-C while pytest was at the first one: it has not come to note it
        session.exitstatus = pytest.ExitCode.INTERRUPTED
    if opened is not None and not gold.is_meant(session.config):
        with _told(session, "the reports"):
            conclusion.conclude(session, opened.run, opened.selected)
    with _told(session, "the reports"):
        yield
        report_files.clean(session.config)
    if opened is not None:
        with _told(session, "the run's records"):
            opened.state.end(session.exitstatus)


@contextmanager
def _told(session: pytest.Session, what: str) -> Iterator[None]:
    try:
        yield
    except (PlanError, OSError) as error:
        if SESSION not in session.config.stash:
            raise
        _writer(session.config)(f"{what} could not be written: {reporting.told(error)}")
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The table, and where everything is."""
    if config.stash.get(_SELECTED, None) == 0 and _means_the_benchmark(config):
        terminalreporter.write_line(selection.why_nothing(config))
    session = config.stash.get(SESSION, None)
    if session is None:
        return
    terminalreporter.section(f"run {session.run.run_id}")
    lines = [
        *(gold.tables(session.run.path) if gold.is_meant(config) else conclusion.tables(config, session.run)),
        *attempts.lines(config.stash[BENCH]),
        *conclusion.left_open(config, session.run, session.selected),
        *session.money(),
        *session.warnings(),
        *session.kept(),
    ]
    for line in lines:
        terminalreporter.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give everything back, whatever happened."""
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.close()
