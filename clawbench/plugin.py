"""The pytest plugin: options, markers, cases, fixtures and what is shown. No logic of its own beyond wiring."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clawbench import hooks, reporting, selection
from clawbench.case import Case
from clawbench.fixtures import BENCH, attempt, case
from clawbench.options import add_options, settings_from
from clawbench.progress import ProgressPrinter
from clawbench.session import ROOT, Session, bench_from
from evaluation.harness import EvaluationError
from evaluation.instances import InstanceError
from gateway.client import GatewayError
from records.run import RunDirectory, RunError
from reports.summary import summary_lines
from workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

__all__ = ["attempt", "case"]

pytest_plugins = ("clawbench.conformance.plugin",)

SESSION = pytest.StashKey[Session]()
_ROWS = pytest.StashKey[bool]()
_WORKER = "clawbench"


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the suite's hooks."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the suite's options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Learn the claws; declare the markers; take over the controller's settings in a worker; else settle them."""
    selection.know_claws(config)
    selection.know_instances(config)
    for name, meaning in selection.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    handed_over = getattr(config, "workerinput", {}).get(_WORKER)
    if handed_over is not None:
        config.stash[BENCH] = bench_from(handed_over, config.workerinput["workerid"])  # type: ignore[attr-defined]
        _end_like_by_ctrl_c()
    elif _is_benchmark(config):
        _write_reports_into_the_run(config)


def _end_like_by_ctrl_c() -> None:
    """At SIGTERM, which services and CI systems send, give everything back as at Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _is_benchmark(config: pytest.Config) -> bool:
    """Whether this process is the controller of a run."""
    option = config.option
    if hasattr(config, "workerinput") or option.collectonly or option.help or option.version:
        return False
    if getattr(option, "markers", False) or getattr(option, "showfixtures", False):
        return False
    bench = ROOT / "tests_bench"
    paths = [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
    return any(path == bench or bench in path.parents or path in bench.parents for path in paths)


def _write_reports_into_the_run(config: pytest.Config) -> None:
    """JUnit and the JSON report go into the run's folder unless the command names other files."""
    if config.rootpath != ROOT:
        # pytest looks for its configuration before it knows our options, and takes the folder that follows
        # one of them for the tests' own
        loose = [
            word for word in config.invocation_params.args if word in {"--artifacts", "--dataset", "--instances"}
        ]
        if loose:
            raise pytest.UsageError(f"write options that name a folder with '=', as in {loose[0]}=FOLDER")
        raise pytest.UsageError(
            f"pytest took {config.rootpath} for the project's folder, so the suite's settings were not read. "
            f"Run it in {ROOT}, or from elsewhere as `pytest {ROOT / 'tests_bench'}`"
        )
    settings = settings_from(config)
    config.option.run_id = settings.run_id
    folder = settings.artifacts / settings.run_id
    if not config.option.xmlpath:
        config.option.xmlpath = str(folder / "junit.xml")
    if not config.option.json_report_file or config.option.json_report_file == ".report.json":
        config.option.json_report = True
        config.option.json_report_file = str(folder / "report.json")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Take up the run before any worker starts."""
    config = session.config
    if not _is_benchmark(config):
        return
    claws = selection.wanted_claws(config)
    if not claws:
        raise pytest.UsageError(
            "no claw is installed: run `clawbench install nanobot`; `clawbench claws` lists all"
        )
    try:
        opened, swept = Session.open(settings_from(config), claws)
    except (WorkspaceError, RunError, GatewayError) as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[SESSION] = opened
    _end_like_by_ctrl_c()
    write = _writer(config)
    distributed = config.getoption("dist", "no") != "no"
    # in this very process a step is told as it begins; of other processes only their files can be read
    config.stash[BENCH] = opened.bench("main", None if distributed else write)
    for name in swept:
        write(f"removed what a run that is gone left behind: container {name}")
    if opened.settings.egress == "open":
        write("WARNING: --egress open: claws can reach the network; the numbers are not comparable with others")
    if opened.settings.adapter == "bare":
        write("--adapter bare: what the claw says in its final message is judged, not what it does")
    write(f"run {opened.settings.run_id}, model {opened.settings.model}")
    if distributed:
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


def pytest_collection_finish(session: pytest.Session) -> None:
    """Check the rows where the cases are run in this very process."""
    _take_rows(session.config, [item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController, ids: Sequence[str]) -> None:
    """Check the rows where workers run the cases; none has begun before all have collected."""
    _take_rows(node.config, ids)


def _take_rows(config: pytest.Config, node_ids: Iterable[str]) -> None:
    session = config.stash.get(SESSION, None)
    if session is None or config.stash.get(_ROWS, False):
        return
    config.stash[_ROWS] = True  # workers collect the same, and one that is replaced collects again
    try:
        session.take_rows({found[1] for node_id in node_ids if (found := selection.case_of(node_id))})
    except (InstanceError, EvaluationError, RunError) as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: Scheduling) -> None:
    """A worker died at a case: an error, never the claw's failure."""
    found = selection.case_of(crashitem)
    if found is not None:
        reporting.amend_crash(Case(sched.config.stash[BENCH], *found), report)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases."""
    if "case" in metafunc.fixturenames:
        selection.parametrize(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases that the command means."""
    selection.narrow(config, items)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a case by its outcome."""
    report = yield
    reporting.amend(item, call, report)
    found = item.stash.get(reporting.CASE, None)
    if found is not None and report.when != "teardown":
        report.user_properties[:] = item.user_properties = reporting.properties(found)
    return report


def pytest_terminal_summary(terminalreporter: object, config: pytest.Config) -> None:
    """The table, and where everything is."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return
    terminalreporter.section(f"run {session.run.run_id}")  # type: ignore[attr-defined]
    for line in [*summary_lines(RunDirectory(session.run.path)), *session.kept()]:
        terminalreporter.write_line(line)  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give everything back, whatever happened."""
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.close()
