"""The `clawbench` command: everything that is not a pytest run.

Each command imports the room that it needs when it is called, so that `clawbench --help` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from adapters import registry
from adapters.base import BadOptionError, NotInstalledError
from adapters.runtimes import default_home
from clawbench import ROOT, compare_command, lite_command, run_commands
from common.errors import ClawbenchError
from evaluation.lists import DATASET

console = Console(highlight=False)


class _Commands(TyperGroup):
    """The commands, whose expected errors are printed in one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not _is_expected(error):
                raise
            console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
            raise typer.Exit(2) from error


def _is_expected(error: Exception) -> bool:
    """Whether the user or the machine can be the cause."""
    import pytest
    from docker.errors import DockerException

    return isinstance(error, (ClawbenchError, DockerException, ImportError, OSError, pytest.UsageError))


app = typer.Typer(
    cls=_Commands,
    help="Set up and look after the benchmark. The benchmark itself is run by pytest: `pytest -n 2 -k nanobot`.",
    no_args_is_help=True,
    add_completion=False,
)
tasks = typer.Typer(help="The embedded task set.", no_args_is_help=True)
app.add_typer(tasks, name="tasks")
run_commands.add_to(app)
app.command()(compare_command.compare)
app.command()(compare_command.parts)
app.add_typer(lite_command.app, name="lite")

Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--plugin", help="A module with claws, as for pytest's -p; installed plugins are found without it."
    ),
]


def _say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def _know_claws(plugins: list[str] | None) -> None:
    """Register the claws of plugins (raises UsageError, ImportError)."""
    from clawbench.pytest_plugin.outside_claws import plugins_of_the_environment
    from clawbench.pytest_plugin.selection import know_claws

    know_claws(plugins_of_the_environment(plugins or ()))


@app.command("install")
def install_command(
    claw: Annotated[
        str,
        typer.Argument(help=f"The claw: {', '.join(registry.CLAWS)}, or a plugin's; `all` installs all of them."),
    ],
    plugins: Plugins = None,
) -> None:
    """Install a claw's pinned runtime below `.claws/` (or CLAWBENCH_HOME).

    `all` continues after a claw that can't be installed, and then ends with exit code 1. Two more names are
    accepted: `python` installs a standalone Python with uv, for claws that are Python programs in images without a
    fitting one; `swebench4` installs the official harness before swebench 5, which judges rows of the older shape.
    """
    from clawbench.install.install_claw import install, install_all
    from clawbench.install.standalone_python import install_python

    _know_claws(plugins)
    if claw == "python":
        install_python(_say)
    elif claw != "all":
        install(claw, _say, default_home())
    elif install_all(_say, default_home()):
        raise typer.Exit(1)


@app.command()
def claws(plugins: Plugins = None) -> None:
    """List the claws with version and place, or how to install what is missing; plugins' claws too."""
    _know_claws(plugins)
    table = Table("claw", "version", "found by", box=None, pad_edge=False)
    table.add_column("where, or how to install it", overflow="fold")
    for name in registry.claws():
        try:
            runtime = registry.adapter(name).runtime()
        except NotInstalledError as error:
            table.add_row(name, "-", "-", escape(str(error)))
        else:
            table.add_row(name, *map(escape, (runtime.version, runtime.found_by, str(runtime.location))))
    console.print(table)


@app.command()
def providers() -> None:
    """List the model providers: address, wire formats, and whether each one's key is set."""
    from clawbench.run.model_choice import providers_file
    from gateway.providers import ProviderConfigError, load_providers, read_key

    table = Table(box=None, pad_edge=False)
    table.add_column("provider", no_wrap=True)
    for heading in ("address", "formats", "transforms", "key"):
        table.add_column(heading, overflow="fold")
    for name, provider in load_providers(providers_file()).items():
        try:
            state = "set" if read_key(provider) is not None else "none needed"
        except ProviderConfigError as error:
            state = str(error).removeprefix(f"{name} needs its key in ").removeprefix("the environment variable ")
        transforms = ", ".join(provider.transforms) or "-"
        table.add_row(name, provider.base_url, ", ".join(provider.apis), transforms, escape(state))
    # variables' names must be shown whole, to be copied, even in a narrow terminal
    Console(highlight=False, width=max(console.width, 120)).print(table)


@app.command("conformance-table")
def conformance_table(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs (artifacts/<run-id>); a later one replaces cells of an earlier."),
    ],
    to: Annotated[Path, typer.Option(help="The page to write.")] = ROOT / "docs" / "conformance.md",
) -> None:
    """Write docs/conformance.md from the results of `pytest -m conformance`."""
    from tests_bench.conformance.conformance_table import load, page

    found = {(cell.claw, cell.requirement): cell for run in runs for cell in load(run)}
    to.write_text(page(list(found.values())), encoding="utf-8")
    _say(f"wrote {to}")


@app.command("sweep")
def sweep_command() -> None:
    """Remove containers of runs that have ended; every run does this when it starts."""
    from clawbench.run.worker_context import connect
    from workspace.owner import sweep

    removed = sweep(connect())
    _say("\n".join(removed) if removed else "nothing was left behind")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def doctor(context: typer.Context) -> None:
    """Check everything that a run would need before any money is spent, and print what to do about each problem.

    Takes the options of the intended run, as in `clawbench doctor -n 8 -m lite -k openclaw --model openrouter/x`.
    Exit code 0: no problem; 1: something must be fixed; 2: the command makes no sense.
    """
    _become_pytest("--doctor", arguments=context.args)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def judge(context: typer.Context) -> None:
    """Let the official harness judge predictions that another tool made.

    Takes files of predictions, then the options of a run, as in `clawbench judge preds.json -n 4 --run-id=theirs`. A
    file has JSON lines, a list or an object by instance id; a folder with such a file can be named, too. Exit codes:
    those of pytest, but 2 if the command makes no sense.
    """
    files, options = _words_and_options(context.args)
    if not files:
        raise BadOptionError("name a file of predictions, as in `clawbench judge preds.json`")
    _become_pytest(*(f"--predictions={file}" for file in files), arguments=options)


def _words_and_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before the first option, and everything from there on."""
    words = list(takewhile(lambda word: not word.startswith("-"), arguments))
    return words, list(arguments[len(words) :])


@app.command(name="estimate", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def estimate_command(context: typer.Context) -> None:
    """Print the hours, dollars and disk that a run will take, each with an interval and what it rests on.

    Takes the options of the intended run, as in `clawbench estimate -n 8 --set lite --claw openclaw --model
    openrouter/x`. It rests on earlier runs with the model in --artifacts, else on published results. A real run prints
    the same when it starts. Exit code 0: printed; 2: the command makes no sense.
    """
    _become_pytest("--estimate", arguments=context.args)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def gold(context: typer.Context) -> None:
    """Find instances whose environment is broken on this machine: gold must resolve, an empty patch must not.

    Takes pytest's options for selection and workers, as in `clawbench gold -m lite -n 2`. A result for the same
    row,
    image and harness is not judged again; later runs warn about broken instances. Exit code 0: all are sound; 1:
    some are broken; 2: the command makes no sense.
    """
    _become_pytest("--gold", arguments=context.args)


_PYTEST = "import sys, pytest; code = int(pytest.main(sys.argv[1:])); sys.exit({4: 2, 5: 2}.get(code, code))"
"""Runs pytest with the exit codes of commands: 2 for wrong use, and for a selection of nothing."""


def _become_pytest(*mode: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by a pytest of the suite's own project, wherever the command was typed."""
    # If no test is named, pytest meets the top conftest.py after it is configured, and forbids its
    # `pytest_plugins` unless --pyargs says that tests may be anywhere; the plugin is loaded by then.
    options = ["-p", "clawbench.pytest_plugin", "--pyargs", "-c", str(ROOT / "pytest.ini"), *mode]
    command = [sys.executable, "-P", "-c", _PYTEST, *options, *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - a list of our own making


@tasks.command("check", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check(
    context: typer.Context,
    dataset: Annotated[
        str | None, typer.Option(help="Check these rows instead: a file, a folder or a dataset on the hub.")
    ] = None,
) -> None:
    """Check tasks: the gold patch resolves, an empty patch does not, and no later commit is left in the image.

    Takes ids; by default, all tasks are checked. The embedded ones must also have every leak before they are stripped.
    With --dataset, this is `clawbench gold` for its rows, and takes the same options, such as `--repeat 5`, which judges
    gold five times to find unstable tests.
    """
    ids, options = _words_and_options(context.args)
    if dataset is not None:
        chosen = ["-k", " or ".join(ids)] if ids else []
        _become_pytest("--gold", f"--dataset={dataset}", f"--set={DATASET}", arguments=[*chosen, *options])
    if options:
        raise BadOptionError(f"{options[0]}: only with --dataset")
    from clawbench.preflight.task_checks import check_tasks
    from clawbench.run.worker_context import connect
    from demo.task_images import embedded_ids

    wanted = ids or embedded_ids()
    if unknown := sorted(set(wanted) - set(embedded_ids())):
        raise BadOptionError(f"not in the embedded set: {', '.join(unknown)}; it has {', '.join(embedded_ids())}")
    table = Table("instance", "gold", "empty", "leaks before", "after", "", box=None, pad_edge=False)
    is_sound = True
    for result in check_tasks(connect(), wanted, home=default_home(), say=_say):
        for problem in result.problems:
            _say(f"{result.instance_id}: {problem}")
        table.add_row(*result.cells(), "ok" if not result.problems else "[red]BROKEN[/red]")
        is_sound = is_sound and not result.problems
    console.print(table)
    if not is_sound:
        raise typer.Exit(1)
