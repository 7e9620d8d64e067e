"""The controller's part of a run: its folder, its manifest, its gateway, and the removal of leftovers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import DockerException
from filelock import FileLock

import demo.task_images
from adapters.registry import installed
from clawbench.controller import emulation
from clawbench.controller.run_log import RunLog
from clawbench.run import disk
from clawbench.run.claw_limits import lacks
from clawbench.run.manifest import rows_source, run_manifest
from clawbench.run.model_choice import Choice
from clawbench.run.order import Order
from clawbench.run.recordings import require_recordings
from clawbench.run.retries import Retries
from clawbench.run.settings import Settings
from clawbench.run.usage import spent
from clawbench.run.worker_context import OUTAGE, WorkerContext, connect
from evaluation.collection import AdapterPart
from evaluation.lists import ListedInstance
from evaluation.rows import take_rows
from gateway.client import Gateway, GatewayClient, GatewayError, control_in, short_folder
from records.case_id import CaseId
from records.run_folder import RunDirectory, RunError
from workspace.owner import kept, sweep
from workspace.workspace_errors import WorkspaceError

if TYPE_CHECKING:
    from clawbench.controller.image_keeper import ImageKeeper

_SHOWN = 10
"""How many broken environments a warning names."""


class RunSession:
    """An open run in the controller. Workers get `handed_over`."""

    def __init__(
        self, settings: Settings, choice: Choice, run: RunDirectory, lock: FileLock, *, is_new: bool
    ) -> None:
        """Use `RunSession.open`."""
        self.settings = settings
        self.choice = choice
        self.run = run
        self.log = RunLog(run)
        self.spent_before = Decimal(0)
        """US dollars that earlier commands with this run id have spent."""
        self.selected: list[CaseId] = []
        """The cases that this command selects, once they are known."""
        self._lock = lock
        self._is_new = is_new
        self._gateway_folder: Path | None = None
        self._gateway: Gateway | None = None
        self._architecture = ""
        self.has_workers = False
        """Whether other processes run the cases."""
        self.images: ImageKeeper | None = None
        """Set when the cases are selected."""
        self.order = Order()
        """The order in which cases are run, and which of them have a final verdict."""

    @classmethod
    def open(
        cls, settings: Settings, choice: Choice, claws: Sequence[str], *, is_gold: bool = False
    ) -> tuple[RunSession, list[str]]:
        """Open a new run, or resume one.

        Args:
            settings: of the run.
            choice: of its model.
            claws: the claws that have cases; if there are none, no gateway is started.
            is_gold: whether instances are checked instead of claws.

        Returns:
            the session, and the names of containers of dead runs that were removed.

        Raises:
            WorkspaceError: Docker does not answer.
            RunError: the run id belongs to a run with other settings, a claw's minimum exceeds a limit, or a disk is
                full.
        """
        for lack in (lack for name in claws if installed(name) for lack in lacks(name, settings)):
            raise RunError(str(lack))
        run = RunDirectory.named(settings.artifacts, settings.run_id)
        if is_gold and run.plan.path.exists():
            raise RunError(f"run {run.run_id} has cases of claws: choose another --run-id for the gold check")
        client = connect()
        is_new = not run.path.exists()
        opened = cls(settings, choice, run, run.lock(), is_new=is_new)
        try:
            shutil.rmtree(run.path / ".progress", ignore_errors=True)  # left by a killed run
            info = client.info()
            opened._architecture = info["Architecture"]
            root = disk.data_root(client, info)
            if missing := disk.shortage(settings.disk_reserve, root, settings.artifacts):
                raise RunError(f"{missing}. Nothing was started")
            run.open(run_manifest(settings, list(claws)))
            Retries(run.path).forget()
            (run.path / OUTAGE).unlink(missing_ok=True)
            swept = sweep(client)
            opened.spent_before = spent(run) if settings.has_price else Decimal(0)
            if settings.has_gateway and claws:
                opened._gateway_folder = short_folder()
            opened.order = Order.settle(run, opened.context().durations, resume=settings.resume)
        except BaseException:
            opened.close()
            raise
        finally:
            client.close()
        return opened, swept

    def start_gateway(self) -> None:
        """Start the gateway, if the run has one, before the first case begins (raises GatewayError).

        The workers got its address earlier, so a command without open cases need not start it.
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

    def context(self, worker: str = "main", tell: Callable[[str], None] | None = None) -> WorkerContext:
        """The context for running cases in this process, without workers.

        Args:
            worker: the worker's name.
            tell: prints a line for the user between two cases; None where any moment may be another case's.
        """
        context = context_from(self.handed_over(), worker)
        context.tell = tell
        return context

    def select(self, selected: Sequence[CaseId], instances: Collection[ListedInstance]) -> int:
        """Read and check the recordings and rows of the selected cases.

        Args:
            selected: the cases.
            instances: the instances of all selected tests.

        Returns:
            how many of the cases have no final verdict.

        Raises:
            RecordingError: a replay has no recording of a case.
            InstanceError: rows can't be read or are malformed; the message names all of them.
            EvaluationError: rows have the older format, and the harness for it is not installed.
            RunError: the run was made with rows of another source or revision.
        """
        if self.settings.recordings is not None:
            require_recordings(self.settings.recordings, selected)
        if instances:
            self._take_rows(instances)
        self.selected = list(selected)
        return sum(str(case) not in self.order.finished for case in selected)

    def _take_rows(self, instances: Collection[ListedInstance]) -> None:
        context = self.context()
        recorded = {name: row.revision for name, row in self.run.manifest().rows.items() if row.revision}
        taken = take_rows(
            instances,
            demo=demo.task_images.TASK_REPO,
            into=context.rows,
            dataset=self.settings.dataset,
            revisions={**recorded, **self.settings.revisions},
        )
        self.run.add_rows({name: rows_source(found, context.home) for name, found in taken.items()})

    def broken_environments(self, selected: Sequence[CaseId]) -> list[str]:
        """Warnings about selected instances whose environment is known to be broken; the manifest names them."""
        from clawbench.preflight.gold_checks import broken  # noqa: PLC0415 - it imports this room

        found = broken(self.context(), selected)
        self.run.note_gold({name: mark.facts() for name, mark in found.items()})
        if not found:
            return []
        names = sorted(found)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return [
            f"WARNING: {len(names)} of the selected instances are broken on this machine (clawbench gold): "
            f"{', '.join(names[:_SHOWN])}{more}. Their cases are run and counted anyway",
            *(f"  {name}: {'; '.join(found[name].judged.problems)}" for name in names[:_SHOWN]),
        ]

    def warnings(self) -> list[str]:
        """Warnings about options that make the results incomparable with other runs."""
        settings, lines = self.settings, []
        if settings.skip_checks:
            lines.append("WARNING: --skip-checks: this machine was not checked; failures may have local causes")
        if settings.network == "own":
            lines.append(
                "WARNING: --network own: claws use your own configuration and credentials, which are in the workspaces "
                "and may get into the artifacts; nothing is counted or limited"
            )
        if settings.network != "gateway":
            lines.append(
                f"WARNING: --network {settings.network}: claws can reach the network; the results can't be compared "
                "with others"
            )
        if not settings.has(AdapterPart.PREPARATION):
            lines.append(
                "WARNING: --adapter-parts without preparation: the workspaces hold all commits of the instances' images, "
                "which may include the fix"
            )
        has_real = self.images is not None and self.images.has_real
        return [*lines, *emulation.warnings(settings.platform, self._architecture, real=has_real)]

    def opening(self) -> list[str]:
        """Lines that say which run this is."""
        settings, lines = self.settings, []
        if settings.collect == "paired":
            lines.append(
                "--collect paired: the claw's changes are judged, and the diff in its final message beside them"
            )
        elif settings.collect != "workspace":
            lines.append(
                f"--collect {settings.collect}: the diff in the claw's final message is judged instead of its changes"
            )
        if settings.is_made_elsewhere:
            lines.append(
                f"run {settings.run_id}: {', '.join(settings.predictions)} made the patches elsewhere, so model, prompt, "
                "budget and cost are unknown"
            )
            return lines
        lines.append(f"run {settings.run_id}, model {settings.model}")
        if self.spent_before:
            limit = f" of --spend-limit ${settings.spend_limit}" if settings.spend_limit is not None else ""
            lines.append(f"spent before under this run id: ${self.spent_before:.4f}{limit}")
        return lines

    @property
    def knows_price(self) -> bool:
        """Whether the model costs something, and its price is known."""
        behind = self.settings.served.behind if self.settings.served is not None else None
        return self.settings.has_price and (behind is None or behind.get("prices") is not None)

    def money(self) -> list[str]:
        """Lines that say what the run has cost, and how to resume it at its spend limit."""
        if self._gateway_folder is None or not self.settings.has_price:
            return []
        amount = f"${spent(self.run):.4f}"
        if not self.knows_price:
            amount = f"unknown, as no price is known for {self.settings.model}"
        lines = [
            f"spent under this run id: {amount}, including all attempts, and the most that each reply of unknown cost "
            "may have cost"
        ]
        if self._is_at_spend_limit():
            lines.append(
                "the run's spend limit is reached: the same command with "
                f"--run-id={self.run.run_id} and a higher --spend-limit resumes the cases that were interrupted or "
                "not begun"
            )
        return lines

    def _is_at_spend_limit(self) -> bool:
        if self._gateway is None:
            return False
        try:
            return GatewayClient(self._gateway.control).cost_limit_reached()
        except GatewayError:
            return False  # the cases report that it is gone

    def kept(self) -> list[str]:
        """Lines about the workspaces that were kept, and what to do with them."""
        if self.settings.keep_container == "never":
            return []
        with closing(connect()) as client:
            names = kept(client, self.run.run_id)
        if not names:
            return []
        first = names[0]
        return [
            *(f"kept workspace: {name}" for name in names),
            f"  look into one:  docker start {first} && docker exec -it {first} sh",
            f"  remove it:      docker rm -f {first}",
        ]

    def close(self) -> None:
        """Release all resources."""
        with ExitStack() as stack:  # callbacks run in reverse order, even if some of them raise
            stack.callback(self._lock.release)
            stack.callback(self._clear_folder)
            if self.has_workers:
                stack.callback(_sweep_after_workers)
            if self._gateway_folder is not None:
                stack.callback(shutil.rmtree, self._gateway_folder, ignore_errors=True)
            if self._gateway is not None:
                stack.callback(self._gateway.stop)
            if self.images is not None:
                stack.callback(self.images.close)

    def _clear_folder(self) -> None:
        """Remove temporary files, and the folder of a run in which nothing happened."""
        if self._is_new and self.run.remove_if_nothing_happened():
            return
        for temporary in (".progress", ".rows", ".slots", ".retries"):
            shutil.rmtree(self.run.path / temporary, ignore_errors=True)
        (self.run.path / OUTAGE).unlink(missing_ok=True)


def _sweep_after_workers() -> None:
    """Remove leftovers of workers: pytest-xdist kills workers that take too long to clean up."""
    # if the engine is gone, the next run removes them
    with suppress(DockerException, WorkspaceError, OSError), closing(connect()) as client:
        sweep(client)


def context_from(handed_over: dict[str, str], worker: str) -> WorkerContext:
    """The context of a worker, from the data that the controller sent."""
    settings = Settings.model_validate_json(handed_over["settings"])
    control = Path(handed_over["control"]) if handed_over["control"] else None
    return WorkerContext(settings, worker, control, order=Order.model_validate_json(handed_over["order"]))
