"""A running workspace: commands in it, files into it and out of it, and its end.

If a command reaches its deadline, the engine ends the whole workspace. So every process in it ends, whatever
the agent did to `kill` or to its own parents, and the file system is kept for the export. The owner of the
workspace may end it in the same way at any time, from any thread.
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

from common.container_exec import has_ended, run_execution
from workspace.container_files import client_of, open_archive, put_files
from workspace.prepare import WORKDIR
from workspace.workspace_errors import WorkspaceError

_LONGEST = 1024
"""Bytes of a path below a fetched folder: Python can neither list nor remove what is deeper."""


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    exit_code: int | None
    """None if the workspace was ended before the command: at its deadline, or by its owner."""
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
    """The container that leads to the gateway, if there is one."""
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when this process ended it, not something in it or anyone else."""

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
            timeout: seconds, after which the workspace is ended with all its processes.
            environment: added to the container's own.
            workdir: where the command starts; the repository by default.
            logs: files that stdout and stderr are written to as they arrive.
            extra: called in another thread when the time is up; returns the seconds by which the deadline is
                extended,
                in all. It is called again at the extended deadline.

        Raises:
            WorkspaceError: the container had ended before, or something outside of it ended it: the engine was
                restarted, or somebody removed it. A command that ends its own container is no error.
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
                raise WorkspaceError(f"{command[0]} could not be run: {error.explanation}") from error
            stack.enter_context(self._deadline(timeout, extra))
            try:
                stdout, stderr = run_execution(api, execution, sinks)
            except APIError as error:
                if not self._ended.is_set():
                    raise WorkspaceError(f"{command[0]} could not be run: {error.explanation}") from error
                stdout = stderr = b""  # the workspace was ended before the command started
        seconds = time.monotonic() - began
        if self._ended.is_set():
            self._wait_until_ended()
            return Result(None, stdout, stderr, seconds)
        try:
            code = api.exec_inspect(execution)["ExitCode"]
            runs = code not in {None, 137} or not has_ended(api, self.container)
        except NotFound as error:
            raise WorkspaceError(f"something outside removed the container while {command[0]} ran") from error
        if not runs:
            code = self.container.attrs["State"]["ExitCode"]
            if not ended_from_within(client_of(self.container), str(self.container.id), since):
                raise WorkspaceError(
                    f"the container ended while {command[0]} ran (exit code {code}): the engine was restarted, or "
                    "something outside ended the container. Run the same command again."
                )
        return Result(137 if code is None else int(code), stdout, stderr, seconds)

    @contextmanager
    def _deadline(self, timeout: float, extra: Callable[[], float]) -> Iterator[None]:
        """End the workspace when the time is up, unless the context is left before."""
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
        """Check that the forwarder to the gateway still runs, after a command that may have used it.

        Raises:
            WorkspaceError: it ended, so that requests to the model got no answer.
        """
        if self.forwarder is None:
            return
        try:
            self.forwarder.reload()
        except NotFound as error:
            raise WorkspaceError("something outside removed the forwarder to the gateway") from error
        if not self.forwarder.attrs["State"]["Running"]:
            raise WorkspaceError(
                "the forwarder to the gateway ended while the claw ran. Run the same command again."
            )

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        """Write files below a folder; missing folders are made."""
        base = folder.strip("/")
        put_files(self.container, "/", {f"{base}/{name}": data for name, data in files.items()}, mode)

    def fetch(self, path: str, destination: Path) -> list[Path]:
        """Copy a file, or the regular files in a folder, to the host; the workspace may have ended.

        Symbolic links are left out, and so are files whose paths would be too long on the host.

        Returns:
            the copies; none if there is no such path.
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
                    # a symbolic link is left out, because the host would resolve it on the host
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
                else:
                    continue
                copied[member.name] = target
        return list(copied.values())

    def end(self) -> None:
        """End every process in the workspace; the file system is kept."""
        self._ended.set()
        try:
            self.container.kill()
        except NotFound:
            return
        except APIError as error:
            if error.status_code != 409:  # not running
                raise

    def freeze(self) -> None:
        """End every process and wait until none is left, so that nothing changes during the export."""
        self.end()
        self._wait_until_ended()

    def _wait_until_ended(self) -> None:
        self.container.wait(timeout=300)


def ended_from_within(client: docker.DockerClient, container_id: str, since: float) -> bool:
    """Whether a container that has ended was ended by its own processes, or by its memory limit.

    The engine's events tell: an end from outside is recorded as a kill or a stop (maybe after the end that it
    caused), and a restarted engine has no record at all. So this must be asked before anything of ours ends the
    container.

    Args:
        client: the engine.
        container_id: of a container that has ended, and may be removed by now.
        since: a time at which it ran, in seconds since the epoch.
    """
    until = int(time.time()) + 1
    told = client.events(since=int(since), until=until, decode=True, filters={"container": container_id})
    actions = {event["Action"] for event in told}
    return bool(actions & {"die", "exec_die"}) and not actions & {"kill", "stop"}
