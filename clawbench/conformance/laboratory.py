"""Runs the conformance suite's cases for one claw, each batch once, whichever test or worker asks first.

What a test needs to know of a run is in files, so that workers share it: the case's own folder, as in any run of
the benchmark, and beside it `run.json`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from threading import Barrier
from typing import cast

from docker.errors import DockerException
from filelock import FileLock

from adapters.base import Adapter, BadOptionError, NotInstalledError
from adapters.registry import adapter
from adapters.runtimes import default_home
from clawbench.bench import Bench
from clawbench.case import Case
from clawbench.conformance.finished import Finished
from clawbench.conformance.prompts import hard_prompt
from clawbench.conformance.repository import ensure_repository
from clawbench.conformance.runs import AMPLE, BATCHES, PLAIN, Run
from clawbench.conformance.watching import Watched
from clawbench.names import CaseName
from clawbench.run_manifest import ROOT
from clawbench.solving import ProviderError, open_attempt
from evaluation.instances import Instance
from evaluation.lists import ListedInstance, listed_instances
from gateway.models import CaseSpec
from workspace.owner import CASE, OWNER, this_process

AT_ONCE = 3
"""Cases of a batch that run at the same time."""
_KEY = "a key of the host's environment"
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_SHORTEST = 15.0
_SHORT = 2.5
"""A short budget is so many times what the claw took for a plain task, and at least the above, in seconds."""


class _ConformanceCase(Case):
    """A case that differs from the benchmark's in what its run says."""

    def __init__(self, bench: Bench, listed: ListedInstance, run: Run, watched: Watched) -> None:
        super().__init__(bench, CaseName(watched.name, listed))
        self.case_id = _case_id(self.claw, run)
        self.watched = watched
        self._run = run

    @cached_property
    def adapter(self) -> Adapter:
        return cast(Adapter, self.watched)

    @cached_property
    def prompt(self) -> str:
        return hard_prompt(self._run.prompt_size, self._run.token) + self._run.prompt_end

    @cached_property
    def instance(self) -> Instance:
        row = Case(self.bench, self.name).instance
        return row.model_copy(update={"base_commit": self._repository[1]}) if self._repository[1] else row

    @cached_property
    def source_image(self) -> str:
        return self._repository[0]

    @cached_property
    def _repository(self) -> tuple[str, str]:
        """Image and commit; "" is the embedded task's own."""
        source = Case(self.bench, self.name).source_image
        if not self._run.has_edits_repository:
            return source, ""
        locks = self.bench.home / "locks"
        return ensure_repository(self.bench.client, source, self.adapter.droppings, locks, self.say)

    def gateway_spec(self) -> CaseSpec:
        spec = super().gateway_spec()
        more = {"commands": self._run.commands, "request_bodies": self.folder.path / "bodies"}
        return spec.model_copy(update=more)


class Laboratory:
    """The runs of one claw."""

    def __init__(self, bench: Bench, claw: str, say: Callable[[str], None]) -> None:
        """Nothing is run yet (raises NotInstalledError)."""
        self.claw = claw
        self.adapter = adapter(claw)
        self.adapter.runtime()
        self._bench = bench
        self._say = say
        self.folder = bench.run.path / "conformance" / claw
        self.folder.mkdir(parents=True, exist_ok=True)

    def finished(self, run: Run) -> Finished:
        """A run's end, which is waited for; with it, those of its batch are run.

        Raises:
            WorkspaceError, GatewayError, DockerException, OSError: something broke around the claw.
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
        return Finished(**{**fields, "folder": Path(fields["folder"])})

    def _run_all(self, runs: Sequence[Run]) -> None:
        together = _start_of(runs)
        with self._key_in_the_environment(), ThreadPoolExecutor(AT_ONCE) as pool:
            running = [pool.submit(self._run, run, together) for run in runs]
            try:
                for one in running:
                    one.result()
            except BaseException:  # Ctrl-C as well: no claw is waited for any more
                pool.shutdown(wait=False, cancel_futures=True)
                self._end(runs)
                raise

    def _end(self, runs: Sequence[Run]) -> None:
        """End the containers of runs that are under way."""
        client = self._bench.client
        mine = [f"{OWNER}={this_process()}"]
        for run in runs:
            marks: dict[str, str | list[str] | bool] = {"label": [*mine, f"{CASE}={_case_id(self.claw, run)}"]}
            for container in client.containers.list(filters=marks, ignore_removed=True):
                with suppress(DockerException):  # it ended by itself
                    container.kill()

    @contextmanager
    def _key_in_the_environment(self) -> Iterator[None]:
        """A user's keys are in the environment that the suite runs in; here they are made up."""
        before = {name: os.environ.get(name) for name in _KEYS}
        os.environ.update(dict.fromkeys(_KEYS, self.secrets[_KEY]))
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def runtime_before(self) -> str:
        """The digest of the installed runtime before any run."""
        path = self.folder / "runtime.sha256"
        with FileLock(self.folder / ".runtime.lock"):
            if not path.exists():
                path.write_text(self.runtime_now())
        return path.read_text()

    def runtime_now(self) -> str:
        """The digest of all that is mounted for the claw: names, modes, links and contents."""
        total = sha256()
        for mount in self.adapter.container_arguments().mounts:
            paths = sorted(mount.source.rglob("*")) if mount.source.is_dir() else [mount.source]
            for path in paths:
                total.update(f"{path}\0{path.lstat().st_mode:o}\0".encode("utf-8", "surrogateescape"))
                if path.is_symlink():
                    total.update(os.fsencode(path.readlink()))
                elif path.is_file():
                    with path.open("rb") as stream:
                        total.update(sha256(stream.read()).digest())
        return total.hexdigest()

    @cached_property
    def secrets(self) -> dict[str, str]:
        """What no container and no artifact may hold, each by what it is."""
        path = self.folder / "key"
        with FileLock(self.folder / ".key.lock"):
            if not path.exists():
                path.write_text(f"sk-{token_hex(20)}")
        found = {
            _KEY: path.read_text(),
            "the suite's folder": str(ROOT),
            "the suite's Python": sys.prefix,
            "the folder of runtimes": str(default_home().resolve()),
        }
        for mount in self.adapter.container_arguments().mounts:
            found[f"where {mount.target} is on the host"] = str(mount.source)
        if len(socket.gethostname()) >= 6:  # a shorter one is part of other words
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
        settings = self._bench.settings.model_copy(
            update={
                "artifacts": self.folder,
                "run_id": run.name,
                "model": f"scripted:{run.model}",
                "adapter": "full",
                "agent_timeout": self._budget(run),
                "max_turns": run.max_turns,
                "resume": False,
            }
        )
        bench = Bench(settings, "main", self._bench.control)
        listed = next(listed for listed in listed_instances() if listed.embedded)
        needles = list(self.secrets.values()) if run.is_inspected else None
        watched = Watched(adapter(self.claw), before=run.before, needles=needles, start=together)
        case = _ConformanceCase(bench, listed, run, watched)
        case.begin()
        refused = failed = ""
        try:
            with open_attempt(case) as attempt:
                attempt.run_claw()
                attempt.export()
        except ProviderError as error:
            failed = str(error)
        except (BadOptionError, NotInstalledError) as error:
            refused = str(error)
        finally:
            if together is not None and not watched.began:
                together.abort()
        done = Finished(
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
    """Where runs wait for each other that must be at work at the same time: those that look for each other."""
    return Barrier(len(batch), timeout=AMPLE) if all(run.is_inspected for run in batch) else None
