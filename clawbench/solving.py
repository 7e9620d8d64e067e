"""The part of a case's life that happens in its workspace: the claw works, then its patch is exported."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from secrets import token_hex

from adapters.base import CommandResult, Task
from clawbench.accounts import facts_of, mismatches
from clawbench.attribution import manifest_of
from clawbench.bench import SpendLimitError
from clawbench.case import Case
from clawbench.endings import ending_of, ending_without_gateway
from clawbench.settings import Served, Settings
from clawbench.watching import Watch
from evaluation.message_patch import patch_in
from evaluation.outcomes import Ending
from gateway.models import CaseCounts
from workspace.container import GATEWAY_PORT, Keep, open_workspace
from workspace.export import Export, export
from workspace.prepare import WORKDIR
from workspace.running import Workspace
from workspace.start_tree import StartTree


class WorkspaceShell:
    """A workspace as adapters see it; the claw's own run also writes its logs to the case's folder."""

    def __init__(self, workspace: Workspace) -> None:
        """Take over a running workspace."""
        self._workspace = workspace
        self.logs: tuple[Path, Path] | None = None
        self.extra: Callable[[], float] = lambda: 0.0
        """Seconds that the claw's deadline is put off by."""

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


class Attempt:
    """A claw at work on a case in a fresh workspace."""

    def __init__(
        self, case: Case, workspace: Workspace, start: StartTree, let_next_in: Callable[[], None]
    ) -> None:
        """Take over a running workspace; use `open_attempt`.

        Args:
            case: the case.
            workspace: it, fresh.
            start: what is in it.
            let_next_in: called when the claw's work is over, and another claw may begin.
        """
        self._case = case
        self._workspace = workspace
        self._start = start
        self._shell = WorkspaceShell(workspace)
        self._let_next_in = let_next_in
        self._ending = Ending.AGENT_ERROR
        self._detail = ""
        self._exit_code: int | None = None
        self._counts: CaseCounts | None = None
        self._stdout = b""

    def run_claw(self) -> None:
        """Run the claw on the prompt until it ends or its budget is used up.

        Raises:
            NotInstalledError, BadOptionError: the claw can't be run so.
            WorkspaceError, GatewayError: what it runs in broke.
        """
        case = self._case
        task = task_of(case.bench.settings, case.served, api=case.api, prompt=case.prompt)
        case.folder.write_text("prompt.txt", task.prompt)
        with case.phase("agent setup", "setting up the claw"):
            case.adapter.create_agent(self._shell, task)
        self._shell.logs = (case.folder.path / "agent_stdout.log", case.folder.path / "agent_stderr.log")
        case.note("agent")
        with case.phase("agent", f"{case.claw} works"):
            result = self._watched(task)
            self._workspace.check_way_out()
        with case.phase("export", "ending the workspace"):
            self._workspace.freeze()
        self._exit_code = result.exit_code
        self._stdout = result.stdout
        if case.bench.settings.gateway == "off":
            self._ending, self._detail = ending_without_gateway(result)
            return
        self._counts = case.bench.gateway.close_case(case.case_id)
        self._ending, self._detail = ending_of(result, self._counts, self._limit)

    def _watched(self, task: Task) -> CommandResult:
        """Run the claw, and end it where the gateway has nothing for it any more (raises GatewayError)."""
        case = self._case
        if case.bench.settings.gateway == "off":
            return case.adapter.send_task(self._shell, task)
        with Watch(case.bench.gateway, case.case_id, self._workspace) as watch:
            if case.bench.settings.exclude_waits:
                self._shell.extra = lambda: watch.waited
            result = case.adapter.send_task(self._shell, task)
        watch.check()
        return result

    def _limit(self, counts: CaseCounts) -> Ending:
        """Which of the two spend limits it was that refused a request."""
        limit = self._case.bench.settings.case_spend_limit
        own = limit is not None and (counts.cost.held or 0) >= limit
        reached = self._case.bench.gateway.totals().budget_reached
        return Ending.BUDGET if own or not reached else Ending.RUN_BUDGET

    def export(self) -> None:
        """Take the patch from repository state and keep it with session and usage.

        Raises:
            ExportError: the patch does not reproduce what the claw left.
            ProviderError: the model's provider broke; what was left is kept, and not judged.
            SpendLimitError: the run's spend limit cut the claw off; likewise.
        """
        case = self._case
        session = case.folder.path / "session"
        with case.phase("export", "exporting the patch"):
            case.adapter.backup_session(self._shell, session)
            taken = export(
                self._workspace.container,
                self._start,
                droppings=case.adapter.droppings,
                save_droppings_to=session / "droppings",
            )
            case.adapter.delete_agent(self._shell)
        self._keep(taken, session)
        self._let_next_in()
        if self._ending is Ending.INFRASTRUCTURE:
            is_refused = self._counts is not None and self._counts.last_ending == "unauthorized"
            raise (RefusedKeyError if is_refused else ProviderError)(self._detail)
        if self._ending is Ending.RUN_BUDGET:
            raise SpendLimitError(self._detail)

    def _keep(self, taken: Export, session: Path) -> None:
        case = self._case
        told = case.adapter.usage(session, self._stdout)
        # what a claw tells at its end alone, it has not told where it was ended
        differing = mismatches(told, self._counts) if self._exit_code is not None else []
        usage = {
            "gateway": self._counts.model_dump(mode="json") if self._counts is not None else None,
            "claw": asdict(told) if told is not None else None,
            "mismatches": differing,
        }
        case.folder.write_text("usage.json", json.dumps(usage, indent=2) + "\n")
        patch = taken.patch
        if case.bench.settings.adapter == "bare":
            patch = self._said(session)
        facts = {
            "model_name_or_path": f"{case.bench.settings.contender(case.claw)}/{case.bench.settings.model}",
            "ending": self._ending,
            "is_final": self._ending.is_final,
            "detail": self._detail,
            "exit_code": self._exit_code,
            **facts_of(self._counts, told, has_price=case.bench.settings.has_price),
            "usage_mismatches": differing,
            "changed_files": taken.changed_files,
            "patch_bytes": len(patch.encode()),
            "start_tree": taken.start_tree,
            "final_tree": taken.final_tree,
            "seconds": {name: round(spent, 3) for name, spent in case.seconds.items()},
        }
        case.folder.keep_export(facts, patch, taken.raw, [asdict(item) for item in taken.dropped])
        case.note("exported", ending=self._ending, patch_bytes=len(patch.encode()))

    def _said(self, session: Path) -> str:
        """The patch in the claw's final message, which is kept."""
        message = self._case.adapter.final_message(session, self._stdout)
        self._case.folder.write_text("final_message.txt", message)
        # half a surrogate pair, which JSON can hold, is no text that a patch could be written down in
        patch = patch_in(message.encode("utf-8", "replace").decode())
        if not patch and not self._detail:
            self._detail = "no diff in its final message" if message else "no final message"
        return patch


class ProviderError(ConnectionError):
    """The model's provider broke under the claw: nothing can be said of the claw."""


class RefusedKeyError(ProviderError):
    """It refused the key, as it will again."""


def task_of(settings: Settings, served: Served, *, api: str, prompt: str) -> Task:
    """A case as its claw sees it.

    Args:
        settings: of the run.
        served: the model as the claw is told of it.
        api: the wire format that it is to speak.
        prompt: what it is told.
    """
    return Task(
        prompt=prompt,
        workdir=WORKDIR,
        base_url=f"http://127.0.0.1:{GATEWAY_PORT}/v1" if settings.gateway == "on" else None,
        model=served.name,
        timeout=settings.agent_timeout,
        max_turns=settings.max_turns,
        llm_no=settings.llm_no,
        api=api,
        context_window=served.context_window,
    )


@contextmanager
def open_attempt(case: Case) -> Iterator[Attempt]:
    """A fresh workspace for a case, given back whatever happens.

    Raises:
        WorkspaceError, PreparationError, ImageMissingError: the workspace could not be made.
        GatewayError: the gateway is gone.
        NotInstalledError: the claw's runtime is not there.
    """
    bench = case.bench
    arguments = case.adapter.container_arguments()
    prepared = case.prepared
    with case.phase("image", "reading the start tree"):
        start = StartTree.of(
            bench.client, prepared, cache=bench.home / "start-trees", labels=case.labels, say=case.say
        )
    case.folder.keep_manifest(manifest_of(case))
    keep = Keep()
    # two runs may have the same id in two folders of artifacts
    unique = f"{bench.settings.run_id}.{case.case_id}"[:170] + f".{token_hex(4)}"
    name = "clawbench." + re.sub(r"[^a-zA-Z0-9_.-]", "-", unique)
    with ExitStack() as stack:
        turn = stack.enter_context(
            bench.agents.turn(partial(case.phase, "waiting", "waiting for another claw to end"))
        )
        if "waiting" in case.seconds:
            bench.require_money()
        socket = bench.gateway.open_case(case.gateway_spec()) if bench.settings.gateway == "on" else None
        if socket is not None:
            stack.callback(case.leave_gateway)
        with case.phase("workspace", "starting a fresh workspace"):
            workspace = stack.enter_context(
                open_workspace(
                    bench.client,
                    prepared,
                    name=name,
                    labels=case.labels,
                    limits=bench.limits,
                    gateway_socket=socket,
                    mounts={mount.target: str(mount.source) for mount in arguments.mounts},
                    environment=arguments.environment,
                    keep=keep,
                    egress=bench.settings.egress == "open",
                )
            )
        try:
            yield Attempt(case, workspace, start, turn.give_back)
        finally:
            wanted = bench.settings.keep_container
            keep.keep = wanted == "always" or (wanted == "failed" and not case.is_resolved)
