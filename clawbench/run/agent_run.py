"""A case's container: the claw works in it, then the runner exports its patch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from adapters.base import Adapter, CommandResult, Task
from clawbench.run import outage
from clawbench.run.agent_watch import AgentWatch
from clawbench.run.case import Case
from clawbench.run.endings import ending_of, ending_without_gateway
from clawbench.run.made_elsewhere import MadeElsewhere
from clawbench.run.manifest import case_manifest
from clawbench.run.outage import ProviderError, RefusedKeyError
from clawbench.run.usage import UsageRecord, mismatches, model_use
from clawbench.run.worker_context import SpendLimitError
from evaluation.collection import AdapterPart
from evaluation.message_patch import patch_in
from evaluation.outcomes import Ending
from evaluation.predictions_file import PredictionsError
from gateway.case_models import CaseCounts
from records.case_folder import MESSAGE_PATCH, SESSION
from records.models import ExportRecord, write_record
from workspace.container import Keep, open_workspace
from workspace.export import Export, export
from workspace.running import Workspace
from workspace.start_tree import StartTree


class Container(Protocol):
    """The container that a case's test gets."""

    def run(self, adapter: Adapter, task: Task) -> None:
        """Run the claw until it ends or its time is used up."""

    def export(self) -> str:
        """The patch, taken from repository state by the runner."""


@dataclass(frozen=True)
class Claw:
    """The adapter that a case's test gets."""

    adapter: Adapter

    def run(self, container: Container, task: Task) -> None:
        """Let the claw work on a task in a container (raises what `FreshContainer.run` raises)."""
        container.run(self.adapter, task)


class ExportedContainer:
    """Replaces the container of a case whose patch was exported earlier: only the verdict is missing."""

    def __init__(self, case: Case) -> None:
        """Use the export that the case has."""
        self._case = case

    def run(self, adapter: Adapter, task: Task) -> None:
        """Do nothing: the claw has finished its work."""

    def export(self) -> str:
        """The patch that was exported."""
        return self._case.folder.patch()


class PredictedContainer:
    """Replaces the container of a case whose patch was made elsewhere."""

    def __init__(self, case: Case, made: MadeElsewhere) -> None:
        """Take a case's patch from predictions."""
        self._case = case
        self._made = made

    def run(self, adapter: Adapter, task: Task) -> None:
        """Do nothing: another tool has done the work."""

    def export(self) -> str:
        """The predicted patch, saved like an exported one.

        Raises:
            PredictionsError: the file of the predictions has changed since the command started.
            WorkspaceError, ImageBuildError, EvaluationError, InstanceError: the case's environment could not be made.
        """
        case, predictions = self._case, self._made.predictions
        if predictions.sha256 != case.context.settings.predictions[case.claw]:
            raise PredictionsError(f"{predictions.path} has changed since the command started: run it again")
        patch = predictions.patches[case.id.instance_id]
        case.folder.keep_manifest(case_manifest(case))
        record = ExportRecord(
            **model_use(None, None, has_price=False).model_dump(),
            model_name_or_path=predictions.model_name or case.claw,
            ending=Ending.FINISHED,
            is_final=True,
            patch_bytes=len(patch.encode()),
            seconds={name: round(spent, 3) for name, spent in case.seconds.items()},
        )
        case.folder.keep_export(record, patch, patch, ())
        case.note("exported", ending=record.ending, patch_bytes=record.patch_bytes)
        return patch


class WorkspaceShell:
    """A workspace as adapters see it (`adapters.base.Shell`); the claw's own run is logged to the case's folder."""

    def __init__(self, workspace: Workspace) -> None:
        """Wrap a running workspace."""
        self._workspace = workspace
        self.logs: tuple[Path, Path] | None = None
        self.extra: Callable[[], float] = lambda: 0.0
        """Seconds by which the claw's deadline is extended."""

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        """See `adapters.base.Shell`."""
        result = self._workspace.run(
            command, timeout=timeout, environment=environment, workdir=workdir, logs=self.logs, extra=self.extra
        )
        return CommandResult(result.exit_code, result.stdout, result.stderr, result.seconds)

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        """See `adapters.base.Shell`."""
        self._workspace.put(folder, files, mode)

    def fetch(self, path: str, destination: Path) -> list[Path]:
        """See `adapters.base.Shell`."""
        return self._workspace.fetch(path, destination)


@dataclass(frozen=True)
class AgentRun:
    """How the claw's run ended."""

    adapter: Adapter
    result: CommandResult
    ending: Ending
    detail: str
    counts: CaseCounts | None
    """What the gateway counted; None without a gateway."""


class FreshContainer:
    """A new container of the prepared image, for one run of the claw; opened by `open_container`."""

    def __init__(
        self, case: Case, workspace: Workspace, start: StartTree, let_next_begin: Callable[[], None]
    ) -> None:
        """Wrap a running workspace.

        Args:
            case: the case.
            workspace: its container.
            start: the tree that the patch is taken against.
            let_next_begin: called when the claw's patch is exported, so that another claw can begin.
        """
        self._case = case
        self._workspace = workspace
        self._start = start
        self._shell = WorkspaceShell(workspace)
        self._let_next_begin = let_next_begin
        self._agent_run: AgentRun | None = None

    def run(self, adapter: Adapter, task: Task) -> None:
        """Run the claw on the task until it ends or its time is used up; then freeze the container.

        Raises:
            NotInstalledError, BadOptionError: the claw is not installed, or an option does not fit it.
            WorkspaceError, GatewayError: the container or the gateway failed.
        """
        case = self._case
        case.folder.write_text("prompt.txt", task.prompt)
        with case.phase("agent setup", "setting up the claw"):
            adapter.create_agent(self._shell, task)
        self._shell.logs = (case.folder.path / "agent_stdout.log", case.folder.path / "agent_stderr.log")
        case.note("agent")
        with case.phase("agent", f"{case.claw} works"):
            result = self._watched_run(adapter, task)
            self._workspace.check_way_out()
        with case.phase("export", "ending the workspace"):
            self._workspace.freeze()
        if not case.context.settings.has_gateway:
            self._agent_run = AgentRun(adapter, result, *ending_without_gateway(result), None)
            return
        counts = case.context.gateway.close_case(case.case_id)
        ending, detail = ending_of(
            result,
            counts,
            self._limit_reached,
            partial(outage.answers, case),
            case.context.settings.max_turns,
        )
        self._agent_run = AgentRun(adapter, result, ending, detail, counts)

    def _watched_run(self, adapter: Adapter, task: Task) -> CommandResult:
        """Run the claw; end it early if no further request will be answered.

        Raises:
            GatewayError: the gateway is gone.
        """
        case = self._case
        if not case.context.settings.has_gateway:
            return adapter.send_task(self._shell, task)
        with AgentWatch(case.context.gateway, case.case_id, self._workspace) as watch:
            if case.context.settings.exclude_waits:
                self._shell.extra = lambda: watch.waited
            result = adapter.send_task(self._shell, task)
        watch.check()
        return result

    def _limit_reached(self, counts: CaseCounts) -> Ending:
        """Which spend limit refused a request: the case's own or the run's."""
        limit = self._case.context.settings.case_spend_limit
        own = limit is not None and (counts.cost.held or 0) >= limit
        reached = self._case.context.gateway.cost_limit_reached()
        return Ending.COST_LIMIT if own or not reached else Ending.RUN_COST_LIMIT

    def export(self) -> str:
        """Take the patch from repository state, and save it with the session and the usage.

        Raises:
            ExportError: the patch does not reproduce the state in which the claw left the repository.
            ProviderError: the model's provider failed; the patch is kept but not judged.
            SpendLimitError: the claw was ended at the run's spend limit; the patch is kept but not judged.
        """
        case, run = self._case, self._agent_run
        if run is None:
            raise RuntimeError("the claw has not been run")
        session = case.folder.path / SESSION
        try:
            with case.phase("export", "exporting the patch"):
                run.adapter.backup_session(self._shell, session)
                exported = export(
                    self._workspace.container,
                    self._start,
                    agent_files=run.adapter.agent_files,
                    save_agent_files_to=session / "agent_files",
                )
                run.adapter.delete_agent(self._shell)
            patch = self._keep(run, exported, session)
        finally:
            case.folder.disarm_session()  # whatever was raised: what the agent wrote must not be loaded
        self._let_next_begin()
        if run.ending is Ending.INFRASTRUCTURE:
            is_refused = run.counts is not None and run.counts.last_ending == "unauthorized"
            raise (RefusedKeyError if is_refused else ProviderError)(run.detail)
        if run.ending is Ending.RUN_COST_LIMIT:
            raise SpendLimitError(run.detail)
        return patch

    def _keep(self, run: AgentRun, exported: Export, session: Path) -> str:
        """Save the export and the usage; returns the patch that is judged."""
        case, settings = self._case, self._case.context.settings
        told = run.adapter.usage(session, run.result.stdout)
        # a claw that was ended could not report its total
        differing = mismatches(told, run.counts) if run.result.exit_code is not None else []
        usage = UsageRecord(gateway=run.counts, claw=told, mismatches=differing)
        write_record(case.folder.path / "usage.json", usage)
        patch, patch_tree, detail = exported.patch, exported.patch_tree, run.detail
        if not settings.has(AdapterPart.CLEANING):
            patch, patch_tree = exported.raw, exported.final_tree
        if settings.collect != "workspace":
            in_message, why_empty = self._patch_in_message(run, session)
            if settings.collect == "paired":
                case.folder.write_text(MESSAGE_PATCH, in_message)
            else:
                patch, detail = in_message, detail or why_empty
        record = ExportRecord(
            **model_use(run.counts, told, has_price=settings.has_price).model_dump(),
            model_name_or_path=f"{settings.agent_label(case.claw)}/{settings.model}",
            ending=run.ending,
            is_final=run.ending.is_final,
            detail=detail,
            exit_code=run.result.exit_code,
            usage_mismatches=tuple(differing),
            changed_files=exported.changed_files,
            patch_bytes=len(patch.encode()),
            start_tree=exported.start_tree,
            final_tree=exported.final_tree,
            patch_tree=patch_tree,
            seconds={name: round(spent, 3) for name, spent in case.seconds.items()},
        )
        case.folder.disarm_session()  # before the export counts: a resumed case does not come here again
        case.folder.keep_export(record, patch, exported.raw, [asdict(item) for item in exported.dropped])
        case.note("exported", ending=run.ending, patch_bytes=len(patch.encode()))
        return patch

    def _patch_in_message(self, run: AgentRun, session: Path) -> tuple[str, str]:
        """The patch in the claw's final message, and the reason if there is none. Saves the message."""
        message = run.adapter.final_message(session, run.result.stdout)
        self._case.folder.write_text("final_message.txt", message)
        # JSON can contain half a surrogate pair, which can't be encoded in a patch
        patch = patch_in(message.encode("utf-8", "replace").decode())
        if patch:
            return patch, ""
        return "", "no diff in its final message" if message else "no final message"


@contextmanager
def open_container(case: Case) -> Iterator[Container]:
    """A fresh container for a case, removed at the end, whatever happens; or what replaces it if none is needed.

    Raises:
        WorkspaceError, PreparationError, ImageMissingError: the container could not be made.
        GatewayError: the gateway is gone.
        NotInstalledError: the claw's runtime is missing.
    """
    if case.is_exported:
        yield ExportedContainer(case)
        return
    if isinstance(case.adapter, MadeElsewhere):
        yield PredictedContainer(case, case.adapter)
        return
    context, settings = case.context, case.context.settings
    arguments = case.adapter.container_arguments()
    prepared = case.prepared
    with case.phase("image", "reading the start tree"):
        start = StartTree.of(
            context.client, prepared, cache=context.home / "start-trees", labels=case.labels, say=case.say
        )
    case.folder.keep_manifest(case_manifest(case))
    keep = Keep()
    # two runs may have the same id in two artifacts folders
    unique = f"{settings.run_id}.{case.case_id}"[:170] + f".{token_hex(4)}"
    with ExitStack() as stack:
        turn = stack.enter_context(
            context.agents.turn(partial(case.phase, "waiting", "waiting for another claw to end"))
        )
        if "waiting" in case.seconds:
            context.require_money()
        socket = None
        if settings.has_gateway:
            socket = context.gateway.open_case(case.gateway_spec())
            stack.callback(case.leave_gateway)
        with case.phase("workspace", "starting a fresh workspace"):
            workspace = stack.enter_context(
                open_workspace(
                    context.client,
                    case.workspace_image,
                    name="clawbench." + re.sub(r"[^a-zA-Z0-9_.-]", "-", unique),
                    labels=case.labels,
                    limits=context.limits,
                    gateway_socket=socket,
                    mounts={mount.target: str(mount.source) for mount in arguments.mounts},
                    environment=arguments.environment,
                    keep=keep,
                    egress=settings.network != "gateway",
                )
            )
        try:
            yield FreshContainer(case, workspace, start, turn.give_back)
        finally:
            wanted = settings.keep_container
            keep.keep = wanted == "always" or (wanted == "failed" and not case.is_resolved)
