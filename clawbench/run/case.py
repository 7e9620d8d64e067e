"""One case: claw x instance x sample, from its row to its outcome."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import demo.task_images
from adapters.base import Adapter, Task, apis_of
from adapters.prompts import render
from adapters.registry import adapter
from clawbench.run import message_arms
from clawbench.run.recordings import CASSETTE, cassette, recorded
from clawbench.run.settings import Served, Settings
from clawbench.run.usage import use_in
from clawbench.run.worker_context import WorkerContext
from evaluation.collection import AdapterPart, Arm
from evaluation.harness import Judgement, harness_version, judge
from evaluation.instances import Instance, load_instance
from evaluation.lists import ListedInstance, by_id
from evaluation.outcomes import Outcome, Verdict, outcome_of
from evaluation.rows import read_row
from gateway.case_models import CaseSpec
from gateway.client import GatewayError
from records.case_folder import EVALUATION, REQUEST_TEXTS, CaseFolder
from records.case_id import CaseId
from records.journal import now
from records.models import AgentResult, ArmRecord, CaseRecord
from workspace.container import GATEWAY_PORT
from workspace.instance_images import find_image
from workspace.owner import labels
from workspace.prepare import WORKDIR, PreparedImage, prepare


class Case:
    """One case. Its folder records how far it got, in this command or in an earlier one of the same run."""

    def __init__(self, context: WorkerContext, case_id: CaseId) -> None:
        """Read and create nothing yet."""
        self.context = context
        self.id = case_id
        self.case_id = str(case_id)
        self.claw = case_id.claw
        self.listed: ListedInstance = by_id()[case_id.instance_id]
        self.folder: CaseFolder = context.run.case(case_id)
        self.seconds: dict[str, float] = {}

    # -- what is known --------------------------------------------------------------------------------

    @cached_property
    def adapter(self) -> Adapter:
        """The claw's adapter (raises NotInstalledError)."""
        return adapter(self.claw)

    @cached_property
    def instance(self) -> Instance:
        """The instance's row (raises InstanceError)."""
        if self.listed.embedded:
            return load_instance(self.listed, demo=demo.task_images.TASK_REPO)
        return read_row(self.context.rows, self.listed.instance_id)

    @property
    def harness(self) -> str:
        """The version of the harness that judges it (raises HarnessMissingError)."""
        return harness_version(self.instance, self.context.home)

    @property
    def prompt_file(self) -> str:
        """The prompt's template in `prompts/` (raises NotInstalledError)."""
        return self.context.settings.prompt_file(self.adapter.prompt_file)

    @cached_property
    def served(self) -> Served:
        """The model as the claw's config names it; in a replay, as it was in the recording."""
        settings = self.context.settings
        return recorded(settings.recordings, self.id) if settings.recordings else settings.endpoint

    @property
    def api(self) -> str:
        """The wire format: the provider's first one that the claw speaks."""
        return self.served.api_for(apis_of(self.adapter))

    @cached_property
    def task(self) -> Task:
        """What the adapter gets to know about the case."""
        prompt = render(self.prompt_file, self.instance.problem_statement)
        return task_of(self.context.settings, self.served, api=self.api, prompt=prompt)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels of all containers and images that this case creates."""
        return labels(self.context.settings.run_id, self.case_id)

    @property
    def is_resolved(self) -> bool:
        """Whether the case has an outcome, and the official harness resolved it."""
        record = self.folder.metadata()
        return record is not None and record.outcome is Outcome.RESOLVED

    def final_verdict(self) -> CaseRecord | None:
        """The record of the case if this command only reports its verdict; None if the case must be run."""
        return self.folder.final_verdict() if self._keeps_results else None

    @property
    def _keeps_results(self) -> bool:
        """Whether existing results are kept; with --no-resume, only results of this command are."""
        return self.context.settings.resume or self.context.run.journal.read().has_begun(
            self.id, self.folder.attempt
        )

    @property
    def is_exported(self) -> bool:
        """Whether the claw's work is on disk, with or without a verdict."""
        export = self.folder.export()
        return export is not None and export.is_final

    # -- the steps ------------------------------------------------------------------------------------

    @contextmanager
    def phase(self, name: str, doing: str) -> Iterator[None]:
        """Time a step and show it to the user."""
        self.say(doing)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    @contextmanager
    def evaluating(self, doing: str) -> Iterator[None]:
        """Wait for one of this machine's evaluation slots, and time what is done in it."""
        with (
            self.context.evaluations.turn(partial(self.phase, "waiting", "waiting for an evaluation slot")),
            self.phase("evaluation", doing),
        ):
            yield

    def say(self, doing: str) -> None:
        """Show what is being done."""
        self.context.progress.say(self.case_id, doing)

    def note(self, event: str, **more: Any) -> None:
        """Write an event to the journal (raises OSError)."""
        self.context.run.note(self.folder, event, worker=self.context.worker, **more)

    def begin(self) -> None:
        """Begin or resume the case. An unfinished attempt is discarded unless it has an export.

        Raises:
            NotBegunError: a disk is full, the spend limit is reached, the provider refuses the account or the gateway is
                gone.
        """
        if self.final_verdict() is not None:
            return
        self.context.require_no_outage()
        self.context.require_room()
        export = self.folder.export()
        if self._keeps_results and export is not None and export.is_final:
            self.seconds = dict(export.seconds)
            self.note("begun", kept="export")
            return
        self.context.require_gateway()
        self.context.require_account()
        self.context.require_money()
        self._begin_anew()

    def _begin_anew(self) -> None:
        # the journal first: it explains why the old files disappear
        self.note("begun", attempt=self.folder.attempt + 1)
        self.folder.begin()

    @cached_property
    def source_image(self) -> str:
        """The name of the instance's image. Pulls it if it is missing, or builds it for an embedded task.

        Raises:
            WorkspaceError, ImageBuildError: it could not be pulled or built.
        """
        context, instance_id = self.context, self.listed.instance_id
        if not self.listed.embedded:
            return find_image(context.pulls, instance_id, self.instance.image, self.say)
        name = demo.task_images.image_name(instance_id)
        if demo.task_images.ensure_image(context.client, instance_id, cache=context.home, say=self.say):
            context.inventory.note(name)
        return name

    @cached_property
    def prepared(self) -> PreparedImage:
        """The prepared image for claw and judge, with only the start commit and its ancestors in its history.

        Raises:
            WorkspaceError: it could not be made.
        """
        context = self.context
        with self.phase("image", "finding the image"):
            source = self.source_image
            return prepare(
                context.client,
                source,
                instance_id=self.listed.instance_id,
                base_commit=self.instance.base_commit,
                locks=context.home / "locks",
                labels=self.labels,
                say=self.say,
                # the embedded tasks' images are built here, for the engine's own platform
                platform=None if self.listed.embedded else context.settings.platform,
                made=partial(context.inventory.note, source=source),
            )

    @property
    def workspace_image(self) -> PreparedImage:
        """The image of the claw's container: the prepared one, or the instance's own if preparation is left out.

        Raises:
            WorkspaceError: it could not be made.
        """
        prepared = self.prepared
        if self.context.settings.has(AdapterPart.PREPARATION):
            return prepared
        return replace(prepared, tag=prepared.source, image_id=prepared.source_id)

    def gateway_spec(self) -> CaseSpec:
        """What the gateway needs to know about the case."""
        settings = self.context.settings
        return CaseSpec(
            case_id=self.case_id,
            model=settings.model,
            workdir=WORKDIR,
            gold_patch=self.instance.patch,
            allowed_tools=self.adapter.allowed_tools,
            request_log=self.folder.requests,
            request_texts=self.context.run.path / REQUEST_TEXTS,
            cassette=self.folder.path / CASSETTE if settings.record else None,
            replayed=cassette(settings.recordings, self.id) if settings.recordings else None,
        )

    def judge(self, patch: str) -> CaseVerdict:
        """Let the official harness judge the exported patch, and save the outcome.

        Raises:
            EvaluationError: the harness gave no verdict.
        """
        known, export = self.final_verdict(), self.folder.export()
        if known is not None:
            return CaseVerdict(known.outcome)
        if export is None:
            raise RuntimeError(f"{self.case_id} has no export to judge")
        judgement = Judgement(Verdict.NOT_JUDGED)
        arms: tuple[ArmRecord, ...] = ()
        collect = self.context.settings.collect
        refusal = message_arms.strict_refusal(self, patch) if patch and collect == Arm.STRICT.value else ""
        if refusal:
            judgement = Judgement(Verdict.APPLY_FAILED, detail=refusal)
        elif patch:
            judgement = self.official_judgement(patch, export.model_name_or_path, EVALUATION)
        if collect == "paired":
            arms = message_arms.judged(self, export, judgement)
        self.folder.require_manifest()
        outcome = outcome_of(export.ending, judgement.verdict)
        self._finish(outcome, export, judgement, arms)
        return CaseVerdict(outcome)

    def official_judgement(self, patch: str, model_name: str, folder: str) -> Judgement:
        """What the official harness says about a patch.

        Args:
            patch: the patch; not empty.
            model_name: the `model_name_or_path` of its prediction.
            folder: for the harness's logs, in the case's folder.

        Raises:
            EvaluationError: the harness gave no verdict.
        """
        image = self.prepared.evaluation
        manifest = self.folder.manifest()
        confined = manifest.evaluation if manifest is not None else {}
        with self.evaluating("the official harness judges the patch"):
            return judge(
                self.instance,
                patch,
                client=self.context.client,
                image=image,
                model_name=model_name,
                timeout=self.context.settings.eval_timeout,
                folder=self.folder.path / folder,
                labels=self.labels,
                ended_from_within=self.context.ended_from_within,
                home=self.context.home,
                network=confined.get("network") != "none",
            )

    def _finish(
        self, outcome: Outcome, result: AgentResult, judgement: Judgement, arms: tuple[ArmRecord, ...] = ()
    ) -> None:
        agent_label = self.context.settings.agent_label(self.claw)
        manifest = self.folder.manifest()
        mark = manifest.gold if manifest is not None else None
        facts = {
            **result.model_dump(),
            "claw": self.claw,
            "agent_label": agent_label,
            "instance_id": self.listed.instance_id,
            "sample": self.id.sample,
            "attempt": self.folder.attempt,
            "language_group": self.listed.language_group,
            "outcome": outcome,
            "infra_retries": len(self.context.retries.reasons(self.case_id)),
            "verdict": judgement.verdict,
            "detail": judgement.detail or result.detail,
            "failing_tests": judgement.failing_tests,
            "seconds": {name: round(spent, 3) for name, spent in self.seconds.items()},
            "finished": now(),
            "environment_problems": mark.problems if mark is not None else (),
            "arms": arms,
        }
        record = CaseRecord.model_validate(facts)
        self.context.run.finish(self.folder, record, worker=self.context.worker)
        if not record.policy.run_again:
            with suppress(OSError):  # durations only affect the order of later runs
                self.context.durations.note(self.listed.instance_id, agent_label, self.seconds)

    def broke(self, why: str, outcome: Outcome = Outcome.INFRASTRUCTURE) -> None:
        """Record that an error ended the case. An existing final verdict is kept.

        Args:
            why: one line for the reports.
            outcome: one that is an error.
        """
        if self.final_verdict() is not None:
            return
        if not self._keeps_results:
            self._begin_anew()  # the results are from an earlier command, and --no-resume discards them
        result = self.folder.export() or self._usage_so_far()
        self._finish(outcome, result, Judgement(Verdict.NOT_JUDGED, detail=why))

    def _usage_so_far(self) -> AgentResult:
        """The usage of a case that failed before its export, from its request log."""
        self.leave_gateway()
        settings, log = self.context.settings, self.folder.requests
        if not settings.has_gateway or not log.exists():
            return AgentResult()
        return AgentResult.model_validate(use_in(log, settings.has_price).model_dump())

    def leave_gateway(self) -> None:
        """Close the case at the gateway if it is open there. If the gateway is gone, the case is closed."""
        if self.context.control is not None:
            with suppress(LookupError, GatewayError):
                self.context.gateway.close_case(self.case_id)


class CaseVerdict:
    """The result of judging a case."""

    def __init__(self, outcome: Outcome) -> None:
        """Wrap the outcome."""
        self.outcome = outcome

    @property
    def resolved(self) -> bool:
        """Whether the official harness resolved it."""
        return self.outcome is Outcome.RESOLVED

    def __repr__(self) -> str:
        return f"<{self.outcome}>"


def task_of(settings: Settings, served: Served, *, api: str, prompt: str) -> Task:
    """What an adapter gets to know about a case.

    Args:
        settings: of the run.
        served: the model as the claw's config names it.
        api: the wire format that the claw must use.
        prompt: the whole prompt.
    """
    return Task(
        prompt=prompt,
        workdir=WORKDIR,
        base_url=f"http://127.0.0.1:{GATEWAY_PORT}/v1" if settings.has_gateway else None,
        model=served.name,
        timeout=settings.agent_timeout,
        max_turns=settings.max_turns,
        llm_no=settings.llm_no,
        api=api,
        context_window=served.context_window,
    )
