"""A running workspace: commands in it, files into it and out of it, and its end.

A command that reaches its deadline is ended by ending the workspace itself, by the engine: every process in it
goes, whatever the agent did to `kill` or to its own parents, and the file system stays to be exported. Whoever
holds the workspace may end it so at any other moment, from any thread.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from engine.ending import has_ended
from engine.output import run_execution
from workspace.archive import client_of, open_archive
from workspace.errors import WorkspaceError
from workspace.prepare import WORKDIR
from workspace.throwaway import put_files

_LONGEST = 1024
"""Bytes of a path below a folder that is fetched: what is deeper down, Python can neither list nor remove."""


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    exit_code: int | None
    """None where the workspace was ended under it: at its deadline, or by whoever holds the workspace."""
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether the deadline ended it."""
        return self.exit_code is None


@dataclass
class Workspace:
    """A running workspace; made by `open_workspace`."""

    container: Container
    forwarder: Container | None = None
    """The way to the gateway, if there is one."""
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when it was ended from here, not by what ran in it or by anyone else."""

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
        logs: tuple[Path, Path] | None = None,
        extra: Callable[[], float] = lambda: 0.0,
    ) -> Result:
        """Run a command as root.

        Args:
            command: the program and its arguments.
            timeout: seconds; at the end of them the workspace is ended with all its processes.
            environment: on top of the container's own.
            workdir: where it starts; the repository where not given.
            logs: files that stdout and stderr are written to as they come.
            extra: asked when the time is up, in another thread: seconds that the deadline is put off by, counted
                from the start like `timeout`. What is more than before is waited for, and then it is asked again.

        Raises:
            WorkspaceError: the container ended under the command, and not from within: the engine was
                restarted or somebody removed it; or it had ended before. A command that ends its own container
                has ended, no more.
        """
        api = client_of(self.container).api
        since = time.time()
        with ExitStack() as stack:
            sinks = [stack.enter_context(path.open("wb")) for path in logs or ()]
            began = time.monotonic()
            try:
                execution = api.exec_create(
                    self.container.id,
                    list(command),
                    environment=dict(environment or {}),
                    workdir=workdir or WORKDIR,
                    user="root",
                )["Id"]
            except APIError as error:
                raise WorkspaceError(f"{command[0]} can't be run: {error.explanation}") from error
            stack.enter_context(self._deadline(timeout, extra))
            try:
                stdout, stderr = run_execution(api, execution, sinks)
            except APIError as error:
                if not self._ended.is_set():
                    raise WorkspaceError(f"{command[0]} can't be run: {error.explanation}") from error
                stdout = stderr = b""  # it was ended before the command had started
        seconds = time.monotonic() - began
        if self._ended.is_set():
            self._wait_until_ended()
            return Result(None, stdout, stderr, seconds)
        try:
            code = api.exec_inspect(execution)["ExitCode"]
            runs = code not in {None, 137} or not has_ended(api, self.container)
        except NotFound as error:
            raise WorkspaceError(f"something outside removed the container under {command[0]}") from error
        if not runs:
            code = self.container.attrs["State"]["ExitCode"]
            if not ended_from_within(client_of(self.container), str(self.container.id), since):
                raise WorkspaceError(
                    f"the container ended under {command[0]} (exit code {code}): the engine was restarted, or "
                    "something outside ended it. Run the same command again."
                )
        return Result(137 if code is None else int(code), stdout, stderr, seconds)

    @contextmanager
    def _deadline(self, timeout: float, extra: Callable[[], float]) -> Iterator[None]:
        """End the workspace when the time is up, unless this is left before."""
        over = threading.Event()
        began = time.monotonic()

        def watch() -> None:
            left = timeout
            while not over.wait(max(0.0, left)):
                left = began + timeout + extra() - time.monotonic()
                if left <= 0:
                    self.end()
                    return

        threading.Thread(target=watch, daemon=True, name="deadline").start()
        try:
            yield
        finally:
            over.set()

    def check_way_out(self) -> None:
        """See that the way to the gateway is still there, after a command that may have used it.

        Raises:
            WorkspaceError: the forwarder ended, so that what asked the model got no answer.
        """
        if self.forwarder is None:
            return
        try:
            self.forwarder.reload()
        except NotFound as error:
            raise WorkspaceError("something outside removed the forwarder to the gateway") from error
        if not self.forwarder.attrs["State"]["Running"]:
            raise WorkspaceError("the forwarder to the gateway ended under the claw. Run the same command again.")

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        """Write files below a folder, making folders on the way."""
        base = folder.strip("/")
        put_files(self.container, "/", {f"{base}/{name}": data for name, data in files.items()}, mode)

    def fetch(self, path: str, destination: Path) -> list[Path]:
        """Copy a file or a folder's regular files to the host, running or ended; symbolic links are left out.

        So are files that are too deep down for a path on the host.

        Returns:
            what was copied; nothing where there is no such path.
        """
        copied: dict[str, Path] = {}
        with suppress(NotFound), open_archive(self.container, path) as archive:
            for member in archive:
                inner = Path(*Path(member.name).parts[1:]) if "/" in member.name else Path(member.name)
                if ".." in inner.parts or inner.is_absolute() or len(os.fsencode(inner)) > _LONGEST:
                    continue
                target = destination / inner
                if member.islnk() and member.linkname in copied:  # a second name of the same file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(copied[member.linkname], target)
                elif member.isfile() and (source := archive.extractfile(member)):
                    # a symbolic link's target would be the host's when it is read there
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
                else:
                    continue
                copied[member.name] = target
        return list(copied.values())

    def end(self) -> None:
        """End every process in the workspace; the file system stays as it is."""
        self._ended.set()
        try:
            self.container.kill()
        except NotFound:
            return
        except APIError as error:
            if error.status_code != 409:  # not running (any more)
                raise

    def freeze(self) -> None:
        """End every process and wait until none is left, so that nothing changes under the export."""
        self.end()
        self._wait_until_ended()

    def _wait_until_ended(self) -> None:
        self.container.wait(timeout=300)


def ended_from_within(client: docker.DockerClient, container_id: str, since: float) -> bool:
    """Whether a container that is found ended was ended by its own processes (or their memory).

    The engine's record of events tells: an end from outside is a kill or a stop there, and only there (it may be
    noted after the end that it caused); a restarted engine remembers nothing. So this is asked before anything
    of ours ends the container.

    Args:
        client: the engine.
        container_id: of a container that was found ended, or removed by now.
        since: a time (seconds since the epoch) at which it ran.
    """
    until = int(time.time()) + 1
    told = client.events(since=int(since), until=until, decode=True, filters={"container": container_id})
    actions = {event["Action"] for event in told}
    return bool(actions & {"die", "exec_die"}) and not actions & {"kill", "stop"}
