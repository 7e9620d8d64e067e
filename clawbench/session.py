"""The controller's part of a run: its folder, its manifest, its gateway, and what earlier runs left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from docker.errors import DockerException
from filelock import FileLock

import demo.images
from adapters.registry import installed
from clawbench import disk
from clawbench.accounts import spent
from clawbench.bench import Bench, connect
from clawbench.claw_limits import lacks
from clawbench.images import emulation
from clawbench.images.keeper import ImageKeeper
from clawbench.model_choice import Choice
from clawbench.progress import ProgressPrinter
from clawbench.run_manifest import run_manifest
from clawbench.scheduling.order import Order
from clawbench.scheduling.retries import Retries
from clawbench.settings import Settings
from clawbench.state import StateKeeper
from evaluation import harness4
from evaluation.harness import harness_version
from evaluation.instances import InstanceError
from evaluation.lists import ListedInstance
from evaluation.rows import Taken, take_rows
from gateway.client import Gateway, GatewayClient, GatewayError, control_in, short_folder
from records.plan import PlannedCase
from records.run import RunDirectory, RunError
from workspace.errors import WorkspaceError
from workspace.owner import kept, sweep


class Session:
    """A run at work in the controller; the workers get `handed_over`."""

    def __init__(
        self, settings: Settings, choice: Choice, run: RunDirectory, lock: FileLock, *, is_new: bool
    ) -> None:
        """Use `Session.open`."""
        self.settings = settings
        self.choice = choice
        self.run = run
        self.state = StateKeeper(run)
        self.spent_before = Decimal(0)
        """US dollars that earlier commands under the same run id cost."""
        self.selected: list[PlannedCase] = []
        """The cases that this command asks for, once they are known."""
        self._lock = lock
        self._is_new = is_new
        self._gateway_folder: Path | None = None
        self._gateway: Gateway | None = None
        self._printer: ProgressPrinter | None = None
        self._architecture = ""
        self.images: ImageKeeper | None = None
        """Once the cases are selected."""
        self.order = Order()
        """In which cases are run, and which of them only repeat their verdict."""

    @classmethod
    def open(cls, settings: Settings, choice: Choice, claws: list[str]) -> tuple[Session, list[str]]:
        """Take up a run, new or to be gone on with.

        Args:
            settings: of the run.
            choice: of its model.
            claws: those that cases will be made for; without any, nobody asks a model.

        Returns:
            the session, and the names of leftover containers of dead runs that were removed.

        Raises:
            WorkspaceError: Docker does not answer.
            RunError: the run id can't be used so, a claw can't run within the limits, or a disk is full.
        """
        for lack in (lack for name in claws if installed(name) for lack in lacks(name, settings)):
            raise RunError(str(lack))
        client = connect()
        run = RunDirectory.named(settings.artifacts, settings.run_id)
        is_new = not run.path.exists()
        session = cls(settings, choice, run, run.lock(), is_new=is_new)
        try:
            shutil.rmtree(run.path / ".progress", ignore_errors=True)  # a killed run's last words
            info = client.info()
            session._architecture = info["Architecture"]
            root = disk.data_root(client, info)
            if missing := disk.shortage(settings.disk_reserve, root, settings.artifacts):
                raise RunError(f"{missing}. Nothing was started")
            run.open(run_manifest(settings, claws))
            Retries(run.path).forget()
            swept = sweep(client)
            session.spent_before = spent(run) if settings.has_price else Decimal(0)
            if settings.gateway == "on" and claws:
                session._gateway_folder = short_folder()
            session.order = Order.settle(run, session.bench("main", None).durations, resume=settings.resume)
        except BaseException:
            session.close()
            raise
        finally:
            client.close()
        return session, swept

    def start_gateway(self) -> None:
        """Start it where the run has one, before a case is run (raises GatewayError).

        Its place was handed over before: a command that only repeats verdicts comes to its end without.
        """
        if self._gateway_folder is not None:
            limits = (self.settings.spend_limit, self.settings.case_spend_limit)
            config = self.choice.gateway_config(*limits, self.spent_before)
            self._gateway = Gateway.start(self.run.path, config, self._gateway_folder)

    def handed_over(self) -> dict[str, str]:
        """What a worker needs to know, as text."""
        control = str(control_in(self._gateway_folder)) if self._gateway_folder is not None else ""
        return {
            "settings": self.settings.model_dump_json(),
            "control": control,
            "order": self.order.model_dump_json(),
        }

    def bench(self, worker: str, tell: Callable[[str], None] | None) -> Bench:
        """The share of a worker in this very process, which tells its progress to the user itself."""
        bench = bench_from(self.handed_over(), worker)
        bench.tell = tell
        return bench

    def take_rows(self, selected: Iterable[ListedInstance]) -> None:
        """Read and check the rows of all selected instances, and what would judge them; the manifest names both.

        Raises:
            InstanceError: rows can't be had or are malformed; the message tells of all.
            EvaluationError: rows are of the older shape, and nothing is there to judge them.
            RunError: the run has rows of another source or revision.
        """
        bench = bench_from(self.handed_over(), "main")
        recorded = {name: row["revision"] for name, row in self.run.part("rows").items() if row["revision"]}
        taken = take_rows(
            selected,
            demo=demo.images.TASK_REPO,
            into=bench.rows,
            dataset=self.settings.dataset,
            revisions={**recorded, **self.settings.revisions},
        )
        self.run.add("rows", {name: taken_from(found, bench.home) for name, found in taken.items()})

    def show_progress(self, printer: ProgressPrinter) -> None:
        """Print what the workers are doing until the session closes."""
        self._printer = printer
        printer.start()

    def warnings(self) -> list[str]:
        """Lines that tell what makes the run's numbers other than those of runs that are like it."""
        settings, lines = self.settings, []
        if settings.skip_checks:
            lines.append(
                "WARNING: --skip-checks: nothing was looked at first; what fails may be this machine's doing"
            )
        if settings.gateway == "off":
            lines.append(
                "WARNING: --gateway off: claws use their user's own configuration and credentials, which are in "
                "the workspaces and may be in the artifacts; nothing is counted or limited"
            )
        if settings.egress == "open":
            why = "--egress open" if settings.gateway == "on" else "--gateway off"
            lines.append(
                f"WARNING: {why}: claws can reach the network; the numbers are not comparable with others"
            )
        has_real = self.images is not None and self.images.has_real
        return [*lines, *emulation.warnings(settings.platform, self._architecture, real=has_real)]

    def opening(self) -> list[str]:
        """Lines that tell which run this is."""
        settings, lines = self.settings, []
        if settings.adapter == "bare":
            lines.append("--adapter bare: what the claw says in its final message is judged, not what it does")
        lines.append(f"run {settings.run_id}, model {settings.model}")
        if self.spent_before:
            limit = f" of --spend-limit ${settings.spend_limit}" if settings.spend_limit is not None else ""
            lines.append(f"spent before under this run id: ${self.spent_before:.4f}{limit}")
        return lines

    def money(self) -> list[str]:
        """Lines that tell what the run has cost, where it could cost anything, and how it goes on at its limit."""
        if self._gateway_folder is None or not self.settings.has_price:
            return []
        lines = [
            f"spent under this run id: ${spent(self.run):.4f}, by what is known of every attempt, and by an "
            "estimate of each reply that told no usage"
        ]
        if self._is_at_its_limit():
            lines.append(
                "the run's spend limit is reached: cases that were cut off, or not begun, are run by the same "
                f"command with --run-id={self.run.run_id} and a higher --spend-limit"
            )
        return lines

    def _is_at_its_limit(self) -> bool:
        if self._gateway is None:
            return False  # no case was to be run
        try:
            return GatewayClient(self._gateway.control).totals().budget_reached
        except GatewayError:
            return False  # it is gone, which the cases say

    def kept(self) -> list[str]:
        """Lines that tell which workspaces were kept, and what to do with them."""
        if self.settings.keep_container == "never":
            return []
        client = connect()
        try:
            names = kept(client, self.run.run_id)
        finally:
            client.close()
        if not names:
            return []
        first = names[0]
        return [
            *(f"kept workspace: {name}" for name in names),
            f"  look into one:    docker start {first} && docker exec -it {first} sh",
            f"  be rid of it:     docker rm -f {first}",
        ]

    def close(self) -> None:
        """Give everything back."""
        with ExitStack() as stack:  # each is given back whatever the others raise, the last one here first
            stack.callback(self._lock.release)
            stack.callback(self._clear_folder)
            if self._printer is not None:
                stack.callback(_clear_after_workers)
                stack.callback(self._printer.stop)
            if self._gateway_folder is not None:
                stack.callback(shutil.rmtree, self._gateway_folder, ignore_errors=True)
            if self._gateway is not None:
                stack.callback(self._gateway.stop)
            if self.images is not None:
                stack.callback(self.images.close)

    def _clear_folder(self) -> None:
        """Remove what is of no use once the command is over, and a run in which nothing happened."""
        if self._is_new and self.run.remove_if_nothing_happened():
            return
        for passing in (".progress", ".rows", ".slots", ".retries"):
            shutil.rmtree(self.run.path / passing, ignore_errors=True)


def _clear_after_workers() -> None:
    """Remove what workers left: pytest-xdist kills those that take more than seconds to give things back."""
    # an engine that is gone has nothing to be asked, and the next run sweeps
    with suppress(DockerException, WorkspaceError, OSError), closing(connect()) as client:
        sweep(client)


def bench_from(handed_over: dict[str, str], worker: str) -> Bench:
    """A worker's share, from what the controller handed over."""
    settings = Settings.model_validate_json(handed_over["settings"])
    control = Path(handed_over["control"]) if handed_over["control"] else None
    return Bench(settings, worker, control, order=Order.model_validate_json(handed_over["order"]))


def taken_from(taken: Taken, home: Path) -> dict[str, Any]:
    """What the manifest says of a set's rows (raises InstanceError, EvaluationError)."""
    harness = harness_version()
    if taken.is_older:
        environment = harness4.find(home)
        strange = harness4.unknown(taken.instances, environment)
        if strange:
            raise InstanceError(
                f"{environment.harness} knows neither the repository nor the version of {', '.join(strange)}"
            )
        harness = environment.harness
    return {"source": taken.source.name, "revision": taken.source.revision, "harness": harness}
