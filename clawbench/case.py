"""One case: claw x instance x sample, from its row to its outcome, and where each step's product goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any

import demo.images
from adapters.base import Adapter, apis_of
from adapters.prompts import render
from adapters.registry import adapter
from clawbench.accounts import facts_of
from clawbench.bench import Bench
from clawbench.images.finding import prepared_image, source_image
from clawbench.names import CaseName
from clawbench.recordings import CASSETTE, cassette, recorded
from clawbench.settings import Served
from clawbench.state import verdict_of
from evaluation.harness import Judgement, harness_version, judge
from evaluation.instances import Instance, load_instance
from evaluation.outcomes import POLICY, Ending, Outcome, Verdict, outcome_of
from evaluation.rows import read_row
from gateway.case import counts_of
from gateway.client import GatewayError
from gateway.models import CaseSpec
from records.case import CaseFolder
from records.journal import PlannedCase, now
from workspace.owner import labels
from workspace.prepare import WORKDIR, PreparedImage


class Case:
    """One case at work. Its folder says how far it got, in this run or an earlier one of the same run id."""

    def __init__(self, bench: Bench, name: CaseName) -> None:
        """Nothing is read or made yet."""
        self.bench = bench
        self.name = name
        self.claw, self.listed, self.sample = name
        self.case_id = name.case_id
        self.folder: CaseFolder = bench.run.case(self.claw, self.listed.instance_id, self.sample)
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
            return load_instance(self.listed, demo=demo.images.TASK_REPO)
        return read_row(self.bench.rows, self.listed.instance_id)

    @property
    def harness(self) -> str:
        """The harness that judges it (raises HarnessMissingError)."""
        return harness_version(self.instance, self.bench.home)

    @property
    def prompt_file(self) -> str:
        """The prompt's template in `prompts/` (raises NotInstalledError)."""
        return self.bench.settings.prompt_file(self.adapter.prompt_file)

    @cached_property
    def prompt(self) -> str:
        """What the claw is told: the same words for every claw."""
        return render(self.prompt_file, self.instance.problem_statement)

    @cached_property
    def served(self) -> Served:
        """The model as the claw is told of it; a recorded one as the recording's claw was."""
        settings = self.bench.settings
        return recorded(settings.recordings, self.name) if settings.recordings else settings.endpoint

    @property
    def api(self) -> str:
        """The wire format: the provider's best of those that the claw speaks."""
        return self.served.api_for(apis_of(self.adapter))

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels of everything that this case makes in the engine."""
        return labels(self.bench.settings.run_id, self.case_id)

    @property
    def outcome(self) -> Outcome | None:
        """What the case counts as, once it is known."""
        metadata = self.folder.metadata()
        return Outcome(metadata["outcome"]) if metadata else None

    @property
    def is_finished(self) -> bool:
        """Whether it has a verdict that stands, of this command or, where that keeps them, of an earlier one."""
        return self.standing() is not None

    def standing(self) -> dict[str, Any] | None:
        """The metadata of a case whose verdict this command only repeats; None for one that it runs."""
        return verdict_of(self.folder) if self._keeps else None

    @property
    def _keeps(self) -> bool:
        """Whether what is there of it stays; asked to forget, a command still keeps what it did itself."""
        if self.bench.settings.resume:
            return True
        case = PlannedCase(self.claw, self.listed.instance_id, self.sample)
        return self.bench.run.journal.read().has_begun(case, self.folder.attempt)

    @property
    def is_exported(self) -> bool:
        """Whether the claw's work is on disk and only the verdict is missing."""
        export = self.folder.export()
        return export is not None and bool(export["is_final"])

    @property
    def is_resolved(self) -> bool:
        """Whether the official harness resolved it."""
        return self.outcome is Outcome.RESOLVED

    # -- the steps ------------------------------------------------------------------------------------

    @contextmanager
    def phase(self, name: str, doing: str) -> Iterator[None]:
        """Time a step and tell the user of it."""
        self.say(doing)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    @contextmanager
    def evaluating(self, doing: str) -> Iterator[None]:
        """Wait for an evaluation slot of this machine, and time what is done in it."""
        with (
            self.bench.evaluations.turn(partial(self.phase, "waiting", "waiting for an evaluation slot")),
            self.phase("evaluation", doing),
        ):
            yield

    def say(self, doing: str) -> None:
        """Tell what is being done."""
        self.bench.progress.say(self.case_id, doing)

    def note(self, event: str, **more: Any) -> None:
        """Write a transition to the journal (raises OSError)."""
        self.bench.run.note(self.folder, event, worker=self.bench.worker, **more)

    def begin(self) -> None:
        """Take up the case: forget an unfinished attempt, unless it got as far as its export."""
        if self.is_finished:
            return
        self.bench.require_room()
        if self._keeps and self.is_exported:
            self.seconds = dict((self.folder.export() or {})["seconds"])
            self.note("begun", kept="export")
            return
        self.bench.require_gateway()
        self.bench.require_money()
        self._begin_anew()

    def _begin_anew(self) -> None:
        # first the journal: of what is removed now, it knows why
        self.note("begun", attempt=self.folder.attempt + 1)
        self.folder.begin()

    @cached_property
    def source_image(self) -> str:
        """The name of the instance's image (raises WorkspaceError, ImageBuildError)."""
        return source_image(self.bench, self.listed, self.instance, self.say)

    @cached_property
    def prepared(self) -> PreparedImage:
        """The prepared image (raises WorkspaceError)."""
        with self.phase("image", "finding the image"):
            source = self.source_image
            return prepared_image(
                self.bench, self.listed, self.instance, source=source, labels=self.labels, say=self.say
            )

    def gateway_spec(self) -> CaseSpec:
        """What the gateway must know of it."""
        settings = self.bench.settings
        return CaseSpec(
            case_id=self.case_id,
            model=settings.model,
            workdir=WORKDIR,
            gold_patch=self.instance.patch,
            allowed_tools=self.adapter.allowed_tools,
            request_log=self.folder.requests,
            cassette=self.folder.path / CASSETTE if settings.record else None,
            replayed=cassette(settings.recordings, self.name) if settings.recordings else None,
        )

    def judge(self) -> None:
        """Let the official harness judge the exported patch, and write the outcome down.

        Raises:
            EvaluationError: it gave no verdict.
        """
        if self.is_finished:
            return
        export = self.folder.export()
        if export is None:
            raise RuntimeError(f"{self.case_id} has no export to judge")
        patch = self.folder.patch()
        judgement = Judgement(Verdict.NOT_JUDGED)
        if patch:
            image = self.prepared.evaluation
            with self.evaluating("the official harness judges the patch"):
                judgement = judge(
                    self.instance,
                    patch,
                    client=self.bench.client,
                    image=image,
                    model_name=export["model_name_or_path"],
                    timeout=self.bench.settings.eval_timeout,
                    folder=self.folder.path / "evaluation",
                    labels=self.labels,
                    ended_from_within=self.bench.ended_from_within,
                    home=self.bench.home,
                )
        self.folder.require_manifest()
        outcome = outcome_of(Ending(export["ending"]), judgement.verdict)
        self._finish(outcome, export, judgement)

    def _finish(self, outcome: Outcome, export: dict[str, Any], judgement: Judgement) -> None:
        ended = not POLICY[outcome].run_again
        facts = {
            **export,
            "claw": self.claw,
            "contender": self.bench.settings.contender(self.claw),
            "instance_id": self.listed.instance_id,
            "sample": self.sample,
            "attempt": self.folder.attempt,
            "language_group": self.listed.language_group,
            "outcome": outcome,
            "infra_retries": len(self.bench.retries.reasons(self.case_id)),
            "verdict": judgement.verdict,
            "detail": judgement.detail or export.get("detail", ""),
            "failing_tests": list(judgement.failing_tests),
            "seconds": {name: round(spent, 3) for name, spent in self.seconds.items()},
            "finished": now(),
            **self.folder.known_problems(),
        }
        self.bench.run.finish(self.folder, facts, ended=ended, worker=self.bench.worker)
        if ended:
            with suppress(OSError):  # it may be lost: the verdict may not
                self.bench.durations.note(self.listed.instance_id, facts["contender"], self.seconds)

    def broke(self, why: str, outcome: Outcome = Outcome.INFRASTRUCTURE) -> None:
        """Write down that the case ended by what is not the claw's doing; an outcome that it has already stays.

        Args:
            why: one line for the reports.
            outcome: one that is an error.
        """
        if self.is_finished:
            return
        if not self._keeps:
            self._begin_anew()  # what is there is of an earlier command, and was to be forgotten
        export = self.folder.export() or self._used()
        self._finish(outcome, {**export, "detail": why}, Judgement(Verdict.NOT_JUDGED, detail=why))

    def _used(self) -> dict[str, Any]:
        """What a case that broke before its export used and cost: the log outlives the gateway and its counts."""
        self.leave_gateway()
        settings, log = self.bench.settings, self.folder.requests
        if settings.gateway == "off" or not log.exists():
            return {}
        return facts_of(counts_of(log), None, has_price=settings.has_price)

    def leave_gateway(self) -> None:
        """Close the case at the gateway, if it is open there; a gateway that is gone has closed it."""
        if self.bench.control is not None:
            with suppress(LookupError, GatewayError):
                self.bench.gateway.close_case(self.case_id)
