"""Runs the conformance suite's cases for one claw: each batch once, when the first test of any worker needs it.

What a test needs to know about a run is in files, which the workers share: the case's own folder, as in any run of
the benchmark, and `run.json` beside it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Barrier
from typing import cast
from unittest.mock import patch

from docker.errors import DockerException
from filelock import FileLock

from adapters.base import Adapter, BadOptionError, NotInstalledError, Task
from adapters.registry import adapter
from adapters.runtimes import default_home
from clawbench import ROOT
from clawbench.run.agent_run import open_container
from clawbench.run.case import Case, task_of
from clawbench.run.outage import ProviderError
from clawbench.run.worker_context import WorkerContext
from common.processes import this_process
from evaluation.instances import Instance
from evaluation.lists import ListedInstance, listed_instances
from gateway.case_models import CaseSpec
from records.case_id import CaseId
from tests_bench.conformance.conformance_runs import AMPLE, BATCHES, PLAIN, Run
from tests_bench.conformance.edit_repository import ensure_repository
from tests_bench.conformance.finished_run import FinishedRun
from tests_bench.conformance.watched_adapter import Watched
from workspace.owner import CASE, OWNER

AT_ONCE = 3
"""Cases of a batch that run at the same time."""
_KEY = "a key of the host's environment"
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_SHORTEST = 15.0
_SHORT = 2.5
"""A short time limit is that many times what the claw took for a plain task, and at least `_SHORTEST` seconds."""


class _ConformanceCase(Case):
    """A case of the benchmark, changed as its run says."""

    def __init__(self, context: WorkerContext, listed: ListedInstance, run: Run, watched: Watched) -> None:
        super().__init__(context, CaseId(watched.name, listed.instance_id))
        self.case_id = _case_id(self.claw, run)
        self.watched = watched
        self._run = run

    @cached_property
    def adapter(self) -> Adapter:
        return cast(Adapter, self.watched)

    @cached_property
    def task(self) -> Task:
        return task_of(self.context.settings, self.served, api=self.api, prompt=self._run.prompt)

    @cached_property
    def instance(self) -> Instance:
        row = Case(self.context, self.id).instance
        return row.model_copy(update={"base_commit": self._repository[1]}) if self._repository[1] else row

    @cached_property
    def source_image(self) -> str:
        return self._repository[0]

    @cached_property
    def _repository(self) -> tuple[str, str]:
        """The image and the commit; "" means the embedded task's own commit."""
        source = Case(self.context, self.id).source_image
        if not self._run.has_edits_repository:
            return source, ""
        locks = self.context.home / "locks"
        return ensure_repository(self.context.client, source, self.adapter.agent_files, locks, self.say)

    def gateway_spec(self) -> CaseSpec:
        spec = super().gateway_spec()
        more = {"commands": self._run.commands, "request_bodies": self.folder.path / "bodies"}
        return spec.model_copy(update=more)


class Laboratory:
    """The runs of one claw."""

    def __init__(self, context: WorkerContext, claw: str, say: Callable[[str], None]) -> None:
        """Nothing is run yet (raises NotInstalledError)."""
        self.claw = claw
        self.adapter = adapter(claw)
        self.adapter.runtime()
        self._context = context
        self._say = say
        self.folder = context.run.path / "conformance" / claw
        self.folder.mkdir(parents=True, exist_ok=True)

    def finished(self, run: Run) -> FinishedRun:
        """A run, once it is over; all runs of its batch are made at the same time.

        Raises:
            InfrastructureError, DockerException, OSError: something other than the claw broke.
        """
        batch = next(batch for batch in BATCHES if run in batch)
        if any(one.is_short for one in batch):
            self.finished(PLAIN)
        with FileLock(self.folder / f".{batch[0].name}.lock"):
            self.runtime_before()
            missing = [one for one in batch if not self._record(one).exists()]
            if missing:
                self._say(f"conformance of {self.claw}: {', '.join(one.name for one in missing)}")
                self._run_all(missing)
        fields = json.loads(self._record(run).read_bytes())
        return FinishedRun(**{**fields, "folder": Path(fields["folder"])})

    def _run_all(self, runs: Sequence[Run]) -> None:
        together = _start_of(runs)
        # a user has keys in the environment that the suite runs in; these are made up
        keys = dict.fromkeys(_KEYS, self.secrets[_KEY])
        with patch.dict(os.environ, keys), ThreadPoolExecutor(AT_ONCE) as pool:
            running = [pool.submit(self._run, run, together) for run in runs]
            try:
                for one in running:
                    one.result()
            except BaseException:  # including Ctrl-C: end the claws instead of waiting for them
                pool.shutdown(wait=False, cancel_futures=True)
                self._end(runs)
                raise

    def _end(self, runs: Sequence[Run]) -> None:
        """Kill the containers of runs that are at work."""
        client = self._context.client
        mine = [f"{OWNER}={this_process()}"]
        for run in runs:
            marks: dict[str, str | list[str] | bool] = {"label": [*mine, f"{CASE}={_case_id(self.claw, run)}"]}
            for container in client.containers.list(filters=marks, ignore_removed=True):
                with suppress(DockerException):  # it has ended already
                    container.kill()

    def runtime_before(self) -> str:
        """The digest of the installed runtime before any run."""
        path = self.folder / "runtime.sha256"
        with FileLock(self.folder / ".runtime.lock"):
            if not path.exists():
                path.write_text(self.runtime_now())
        return path.read_text()

    def runtime_now(self) -> str:
        """The digest of everything that is mounted for the claw: names, modes, links and contents."""
        total = sha256()
        for mount in self.adapter.container_arguments().mounts:
            paths = sorted(mount.source.rglob("*")) if mount.source.is_dir() else [mount.source]
            for path in paths:
                total.update(f"{path}\0{path.lstat().st_mode:o}\0".encode("utf-8", "surrogateescape"))
                if path.is_symlink():
                    total.update(os.fsencode(path.readlink()))
                elif path.is_file():
                    total.update(sha256(path.read_bytes()).digest())
        return total.hexdigest()

    @cached_property
    def secrets(self) -> dict[str, str]:
        """Texts that must be in no container and no artifact, by what they are."""
        found = {
            _KEY: f"sk-{sha256(os.fsencode(self.folder)).hexdigest()[:40]}",  # the same in every worker
            "the suite's folder": str(ROOT),
            "the suite's Python": sys.prefix,
            "the folder of runtimes": str(default_home().resolve()),
        }
        for mount in self.adapter.container_arguments().mounts:
            found[f"where {mount.target} is on the host"] = str(mount.source)
        if len(socket.gethostname()) >= 6:  # a shorter name is part of other words
            found["the host's name"] = socket.gethostname()
        return found

    def _record(self, run: Run) -> Path:
        return self.folder / run.name / "run.json"

    def _budget(self, run: Run) -> float:
        if not run.is_short:
            return AMPLE
        plain = json.loads(self._record(PLAIN).read_bytes())
        took = float(plain["ended"] - plain["began"])
        return max(_SHORTEST, _SHORT * took)

    def _run(self, run: Run, together: Barrier | None) -> None:
        settings = self._context.settings.model_copy(
            update={
                "artifacts": self.folder,
                "run_id": run.name,
                "model": f"scripted:{run.model}",
                "collect": "workspace",
                "agent_timeout": self._budget(run),
                "max_turns": run.max_turns,
                "resume": False,
            }
        )
        context = WorkerContext(settings, "main", self._context.control)
        listed = next(listed for listed in listed_instances() if listed.embedded)
        needles = list(self.secrets.values()) if run.is_inspected else None
        watched = Watched(adapter(self.claw), before=run.before, needles=needles, start=together)
        case = _ConformanceCase(context, listed, run, watched)
        case.begin()
        refused = failed = ""
        try:
            with open_container(case) as container:
                container.run(case.adapter, case.task)
                container.export()
        except ProviderError as error:
            failed = str(error)
        except (BadOptionError, NotInstalledError) as error:
            refused = str(error)
        finally:
            if together is not None and not watched.began:
                together.abort()
        done = FinishedRun(
            run.name,
            case.folder.path,
            refused,
            failed,
            settings.agent_timeout,
            watched.began,
            watched.ended,
            watched.seen,
        )
        self._record(run).write_text(json.dumps(asdict(done), default=str))


def _case_id(claw: str, run: Run) -> str:
    return f"{claw}-conformance-{run.name}"


def _start_of(batch: Sequence[Run]) -> Barrier | None:
    """Where inspected runs wait for each other: they look for each other's traces, so they must run together."""
    return Barrier(len(batch), timeout=AMPLE) if all(run.is_inspected for run in batch) else None
