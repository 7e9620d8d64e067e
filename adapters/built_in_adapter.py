"""What the suite's own adapters do alike, each with what it declares as class attributes."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from adapters import user_config
from adapters.base import STATE_DIR, CommandResult, NoAnswerError, NotInstalledError, Shell, Task

CHECK_TIMEOUT = 120.0
"""Seconds that a short command in the container may take."""


class BuiltInAdapter:
    """The parts of `base.Adapter` that the built-in claws share.

    A claw's class adds `runtime`, `container_arguments`, `send_task`, `usage`, `final_message`, and the two steps
    of `create_agent`: `check` and `files`.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    """The version that `clawbench install` installs."""
    config_name: ClassVar[str]
    """The config template's name in `claw_configs/<claw>/`."""
    credential_files: ClassVar[tuple[str, ...]]
    """Globs of the files below `folder` that hold credentials if the config is the user's own."""
    prompt_file: ClassVar[str] = "default.txt"
    agent_files: ClassVar[tuple[str, ...]] = ()
    has_own_config: ClassVar[bool] = True

    @property
    def folder(self) -> str:
        """The claw's state, inside the container."""
        return f"{STATE_DIR}/{self.name}"

    @property
    def template(self) -> Path:
        """The config file that is in git."""
        return user_config.CONFIGS / self.name / self.config_name

    def config_file(self) -> Path:
        """See `Adapter.config_file`: the user's own if there is one."""
        own = self.template.with_suffix(f".local{self.template.suffix}")
        return own if own.exists() else self.template

    def own_config_file(self) -> Path:
        """The config that the claw runs on with the gateway off (raises BadOptionError if there is none)."""
        return user_config.own_file(self.config_file())

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`."""
        variables = self.check(shell, task)
        if task.base_url is None:
            file = self.own_config_file()
            user_config.mark(shell, self.folder)
        else:
            file = self.config_file()
        shell.put(self.folder, self.files(file, task, variables), mode=0o600)

    def check(self, shell: Shell, task: Task) -> dict[str, str]:
        """Make sure that the runtime runs in the container.

        Returns:
            the container's environment variables, for claws that hide them from their shell tool.

        Raises:
            NotInstalledError: it does not run; the message says what to do.
            NoAnswerError: the container did not answer.
        """
        raise NotImplementedError

    def files(self, config: Path, task: Task, variables: Mapping[str, str]) -> dict[str, bytes]:
        """The files that go into `folder`, by relative path.

        Args:
            config: the settings in use; the claw's own config if the task has no `base_url`.
            task: the case.
            variables: what `check` returned.

        Raises:
            BadOptionError: the config file can't be used.
        """
        raise NotImplementedError

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`."""
        shell.fetch(self.folder, destination)
        user_config.leave_out(destination, *self.credential_files)

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def run_claw(
    shell: Shell, task: Task, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a claw's command in the repository until the task's time is up.

    With the gateway off it gets the user's keys as well: a config may name their variables. HOME stays the
    image's, since its toolchains keep there what they need without a network (~/.m2, ~/.cargo).
    """
    environment = {"LANG": "C.UTF-8", **(variables or {})}
    if task.base_url is None:
        environment |= user_config.credentials()
    return shell.run(command, timeout=task.timeout, environment=environment, workdir=task.workdir)


def require_answer(shell: Shell, command: Sequence[str], failure: str) -> bytes:
    """What a short command prints.

    Args:
        shell: runs it.
        command: the command.
        failure: the message if it fails; "{said}" stands for the last line of its output.

    Raises:
        NotInstalledError: it fails.
        NoAnswerError: it did not end in time.
    """
    result = shell.run(command, timeout=CHECK_TIMEOUT)
    if result.timed_out:
        raise NoAnswerError(f"{command[0]} did not answer within {CHECK_TIMEOUT:.0f} s")
    if result.exit_code != 0:
        lines = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        raise NotInstalledError(failure.replace("{said}", lines[-1] if lines else "no output"))
    return result.stdout


def query_database(session: Path, name: str, query: str) -> list[tuple[Any, ...]]:
    """All rows that a session's SQLite database gives for a query.

    The files are copied first, because SQLite would change them: what a claw wrote last is in the write-ahead log
    beside the database.

    Args:
        session: a folder with the database anywhere in it.
        name: the database's file name.
        query: SQL.

    Returns:
        the rows; [] if there is no such database or it can't be read: a claw can write into it what it likes.
    """
    found = sorted(session.rglob(name))
    if len(found) != 1:
        return []
    with tempfile.TemporaryDirectory() as folder:
        for path in found[0].parent.glob(f"{name}*"):
            shutil.copyfile(path, Path(folder, path.name))
        try:
            with closing(sqlite3.connect(Path(folder, name))) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.Error:
            return []
