"""The `clawbench` command: what is not a pytest run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import pytest
import typer
from docker.errors import DockerException
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapters import registry
from adapters.base import BadOptionError, NotInstalledError
from adapters.runtimes import default_home
from clawbench import run_commands
from clawbench.accounts import use_lines
from clawbench.bench import connect
from clawbench.conformance.table import load, page
from clawbench.install import install, install_all
from clawbench.installers.base import InstallError
from clawbench.model_choice import ModelError, check_limits, from_provider, providers_file
from clawbench.modes import become_pytest
from clawbench.outside import plugins_of_the_environment
from clawbench.proxy import Proxy
from clawbench.run_manifest import ROOT
from clawbench.selection import know_claws
from clawbench.standalone_python import install_python
from clawbench.task_checks import TaskCheck, check_tasks
from demo.images import ImageBuildError, embedded_ids
from evaluation.harness import EvaluationError
from gateway.metering.prices import PriceError
from gateway.providers import ProviderConfigError, load_providers, provider_of, read_key
from workspace.errors import WorkspaceError
from workspace.owner import sweep

app = typer.Typer(
    help="Set up and look after the benchmark. The benchmark itself is run by pytest: `pytest -n 2 -k nanobot`.",
    no_args_is_help=True,
    add_completion=False,
)
tasks = typer.Typer(help="The embedded task set.", no_args_is_help=True)
app.add_typer(tasks, name="tasks")
run_commands.add_to(app)
console = Console(highlight=False)

Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--plugin", help="A module that brings claws, as for pytest's -p; installed ones need none."
    ),
]
_EXPECTED = (
    BadOptionError,
    ModelError,
    PriceError,
    ProviderConfigError,
    NotInstalledError,
    InstallError,
    WorkspaceError,
    EvaluationError,
    ImageBuildError,
    DockerException,
    ImportError,
    OSError,
    pytest.UsageError,
)
"""What a user or a machine can be the cause of: told in a line, without a traceback."""


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except _EXPECTED as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from error


def _say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


@app.command("install")
def install_command(
    claw: Annotated[
        str,
        typer.Argument(help=f"Which claw: {', '.join(registry.CLAWS)}, one of a plugin's; or all of them: all."),
    ],
    plugins: Plugins = None,
) -> None:
    """Install a claw's pinned runtime below `.claws/` (or CLAWBENCH_HOME); there already: says so.

    `all` goes on after a claw that can't be had, and ends with exit code 1 then. Two names are no claws: `python`
    is a standalone Python, had by uv, for claws that are Python programs in images that have none that fits;
    `swebench4` is the official harness before swebench 5, which judges rows of the older shape.
    """
    with _told():
        know_claws(plugins_of_the_environment(plugins or ()))
        if claw == "python":
            install_python(_say)
        elif claw != "all":
            install(claw, _say, default_home())
        elif install_all(_say, default_home()):
            raise typer.Exit(1)


@app.command()
def claws(plugins: Plugins = None) -> None:
    """List the claws, those of plugins too: version, where each was found, and how to get what is missing."""
    with _told():
        know_claws(plugins_of_the_environment(plugins or ()))
    table = Table("claw", "version", "found by", box=None, pad_edge=False)
    table.add_column("where, or how to get it", overflow="fold")
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
    """List the model providers: address, wire formats, and whether each has its key."""
    with _told():
        declared = load_providers(providers_file())
    table = Table(box=None, pad_edge=False)
    table.add_column("provider", no_wrap=True)
    for heading in ("address", "formats", "transforms", "key"):
        table.add_column(heading, overflow="fold")
    for name, provider in declared.items():
        try:
            state = "set" if read_key(provider) is not None else "none needed"
        except ProviderConfigError as error:
            state = str(error).removeprefix(f"{name} needs its key in ").removeprefix("the environment variable ")
        transforms = ", ".join(provider.transforms) or "-"
        table.add_row(name, provider.base_url, ", ".join(provider.apis), transforms, escape(state))
    # the names of variables must be there whole, to be copied, on a narrow terminal too
    Console(highlight=False, width=max(console.width, 120)).print(table)


@app.command()
def gateway(
    *,
    provider: Annotated[str, typer.Option(help="Who answers; `clawbench providers` lists them.")],
    model: Annotated[str, typer.Option(help="The model's name, as the provider calls it.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any port that is free.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    spend_limit: Annotated[str, typer.Option(help="US dollars after which no request is let through.")] = "",
    log: Annotated[Path, typer.Option(help="Gets a line per request.")] = Path("requests.jsonl"),
    record: Annotated[Path | None, typer.Option(help="Gets every exchange whole, without keys.")] = None,
) -> None:
    """Serve a provider's model to any client, counted and limited as in a run, without the suite.

    On another address than loopback, clients must give a token, which is printed, as their key.
    """
    with _told():
        found, name = provider_of(f"{provider}/{model}", load_providers(providers_file()))
        choice = from_provider(found, name, read_key(found))
        limit = _dollars(spend_limit) if spend_limit else None
        check_limits(choice, ["--spend-limit"] if limit is not None else [])
        if record is not None and record.exists() and record.stat().st_size:
            raise BadOptionError(
                f"--record {record}: there is a recording already; give another file, or remove it"
            )
        counts = asyncio.run(Proxy(choice, host, port, log, limit, record).serve(_say))
    for line in use_lines(counts):
        _say(line)


def _dollars(text: str) -> Decimal:
    try:
        limit = Decimal(text)
    except ArithmeticError as error:
        raise BadOptionError(f"--spend-limit {text}: not a number of dollars") from error
    if not limit.is_finite() or limit <= 0:
        raise BadOptionError(f"--spend-limit {text}: must be above 0")
    return limit


@app.command("conformance-table")
def conformance_table(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs (artifacts/<run-id>); later ones count.")],
    to: Annotated[Path, typer.Option(help="The page to write.")] = ROOT / "docs" / "conformance.md",
) -> None:
    """Make docs/conformance.md from the results of `pytest -m conformance`."""
    with _told():
        found = {(cell.claw, cell.requirement): cell for run in runs for cell in load(run)}
        to.write_text(page(list(found.values())), encoding="utf-8")
    _say(f"wrote {to}")


@app.command("sweep")
def sweep_command() -> None:
    """Remove the containers of runs that are gone; every run does this when it starts."""
    with _told():
        removed = sweep(connect())
    _say("\n".join(removed) if removed else "nothing was left behind")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def doctor(context: typer.Context) -> None:
    """Tell of everything that a run would need, before anything is spent: one table, each line with what to do.

    Takes the options of the run that is meant, as in `clawbench doctor -n 8 -m lite -k openclaw --model
    openrouter/x`. Ends with 0, with 1 where something is at fault, with 2 where the command makes no sense.
    """
    become_pytest("--doctor", context.args)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def gold(context: typer.Context) -> None:
    """Find the instances whose environment is broken on this machine: gold must resolve, an empty patch must not.

    Takes pytest's options for selection and workers, as in `clawbench gold -m lite -n 2`. What is known already,
    of the same row, image and harness, is not judged again. Runs are warned of what was found. Ends with 0, with 1
    where something is broken, with 2 where the command makes no sense.
    """
    become_pytest("--gold", context.args)


@tasks.command("check")
def check(
    ids: Annotated[list[str] | None, typer.Argument(help="Instances; all of the embedded set by default.")] = None,
) -> None:
    """Prove the embedded tasks: gold resolves, an empty patch does not, every leak is there and is stripped."""
    wanted = ids or embedded_ids()
    unknown = sorted(set(wanted) - set(embedded_ids()))
    if unknown:
        console.print(
            f"[red]error:[/red] not in the embedded set: {escape(', '.join(unknown))}; "
            f"it has {', '.join(embedded_ids())}",
            soft_wrap=True,
        )
        raise typer.Exit(2)
    with _told():
        results = list(_watched(check_tasks(connect(), wanted, home=default_home(), say=_say), _say))
    table = Table("instance", "gold", "empty", "leaks before", "after", "", box=None, pad_edge=False)
    for result in results:
        table.add_row(*result.cells(), "ok" if result.is_sound else "[red]BROKEN[/red]")
    console.print(table)
    if not all(result.is_sound for result in results):
        raise typer.Exit(1)


def _watched(results: Iterator[TaskCheck], say: Callable[[str], None]) -> Iterator[TaskCheck]:
    for result in results:
        for problem in result.problems:
            say(f"{result.instance_id}: {problem}")
        yield result
