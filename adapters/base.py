"""The adapter protocol: what connects one claw to the suite, and everything in which claws may differ.

It has the five methods of the paper (create the agent, send the task, back up the session, delete the agent,
supply the container's arguments; Claw-SWE-Bench, section 2.2) and what the suite's guarantees need: where the
runtime is, which files the claw leaves in the repository, and what it reports about its usage. Nothing here starts
a container: an adapter gets a `Shell` into a running one. This module imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from common.errors import InfrastructureError, LastingError

APIS = ("chat", "responses", "messages")
"""The wire formats: OpenAI's chat/completions and responses, Anthropic's messages."""

STATE_DIR = "/claw"
"""A folder inside the container, outside the repository, for the claw's config, state and session."""


class NotInstalledError(LastingError, LookupError):
    """A claw's runtime was not found or does not run in the container; the message says how to get it."""


class BadOptionError(LastingError, ValueError):
    """The claw can't do what an option, a config file or a prompt asks of it."""


class NoAnswerError(InfrastructureError, TimeoutError):
    """A short command in the container did not end in time."""


@dataclass(frozen=True)
class Runtime:
    """An installed claw."""

    version: str
    location: Path
    found_by: str
    """How it was found: the name of an environment variable, or `clawbench install`."""


@dataclass(frozen=True)
class Mount:
    """A host folder, or one file, that the container sees read-only."""

    source: Path
    target: str


@dataclass(frozen=True)
class ContainerArguments:
    """What a claw's runtime needs in its container."""

    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """One case as the claw sees it."""

    prompt: str
    workdir: str
    """The repository, inside the container."""
    base_url: str | None
    """The gateway's address inside the container. It ends in `/v1`; `/chat/completions`, `/responses` and
    `/messages` are below it. None if the gateway is off: the claw uses its user's own configuration and
    credentials."""
    model: str
    """The model's name as the claw must send it. With the gateway off, the name from the user's own configuration;
    "" means the model that this configuration selects."""
    timeout: float
    """The time limit, in seconds of wall clock."""
    max_turns: int
    llm_no: int = 0
    api: str = "chat"
    """The wire format for talking to the gateway, one of the adapter's `apis`."""
    context_window: int | None = None
    """The model's context window in tokens, as the provider declares it; None: the claw's config decides."""


@dataclass(frozen=True)
class CommandResult:
    """How a command in the container ended."""

    exit_code: int | None
    """None if the command was killed at its deadline."""
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether the command was killed at its deadline."""
        return self.exit_code is None


class Shell(Protocol):
    """How an adapter acts inside the container."""

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        """Run a command as root.

        Args:
            command: the program and its arguments.
            timeout: seconds; when they have passed, every process in the container is killed.
            environment: variables to set in addition to the container's own.
            workdir: the working directory.
        """

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        """Write files (relative path: content) below a folder; missing folders are created."""

    def fetch(self, path: str, destination: Path) -> list[Path]:
        """Copy a file or a whole folder out of the container, even after it was frozen.

        Only regular files are copied; links are not followed.

        Returns:
            the copies; [] if the path does not exist.
        """


@dataclass(frozen=True)
class TokenUsage:
    """Tokens in four classes that do not overlap; None means unknown, never 0."""

    input: int | None = None
    """Prompt tokens without the cached ones."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None


class Adapter(Protocol):
    """One claw. Instances are stateless: each call passes everything about the case.

    Attributes with a value here are optional.
    """

    name: ClassVar[str]
    install_hint: ClassVar[str]
    """How a user can install the runtime."""
    prompt_file: ClassVar[str]
    """The template in `prompts/`; anything but `default.txt` may only add tool-name guidance."""
    agent_files: ClassVar[tuple[str, ...]]
    """The claw's own files in the repository, as .gitignore-style patterns anchored at its root (`/memory/`)."""
    allowed_tools: ClassVar[tuple[str, ...] | None]
    """The tools that the model is offered, by the names that the claw sends; the gateway removes all others from
    its requests. None: every tool is allowed."""
    min_memory: ClassVar[str]
    """The least memory that the claw runs in, as Docker writes it (`512m`)."""
    min_pids: ClassVar[int]
    """The least number of processes and threads that the claw runs with."""
    apis: ClassVar[tuple[str, ...]] = ("chat",)
    """The wire formats from `APIS` that the claw supports, best first. Read it with `apis_of`."""
    has_own_config: ClassVar[bool] = False
    """Whether it can run with the gateway off, on its user's own configuration and credentials."""

    def runtime(self) -> Runtime:
        """Find the installed runtime without starting anything slow.

        Raises:
            NotInstalledError: it was not found, or a variable names something else.
        """

    def config_file(self) -> Path:
        """The config file in use; its digest goes into the manifest."""

    def container_arguments(self) -> ContainerArguments:
        """The runtime's read-only mounts and environment variables (raises NotInstalledError)."""

    def create_agent(self, shell: Shell, task: Task) -> None:
        """Write the claw's config below `STATE_DIR`: rendered for the gateway, or the user's own without it.

        Raises:
            BadOptionError: the config file can't be used, or there is none of the user's own.
            NotInstalledError: the runtime does not run in this container.
            NoAnswerError: the container did not answer.
        """

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """Run the claw headless on the prompt, until it ends or its time limit is reached.

        Raises:
            BadOptionError: this claw can't take the prompt or an option.
        """

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """Copy the session's files to a folder on the host; the container may be frozen."""

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:
        """The usage that the claw itself reports, in its session or output; None if it reports none."""

    def final_message(self, session: Path, stdout: bytes) -> str:
        """The claw's final text, as exactly as possible; "" if it did not finish with one.

        Args:
            session: the folder that `backup_session` filled.
            stdout: the output of `send_task`; claws may wrap or decorate what they print.
        """

    def delete_agent(self, shell: Shell) -> None:
        """Remove anything that `create_agent` made outside the container."""


def apis_of(claw: Adapter) -> tuple[str, ...]:
    """The wire formats that a claw supports; an adapter from outside the tree need not declare them."""
    return getattr(claw, "apis", Adapter.apis)


def has_own_config(claw: Adapter) -> bool:
    """Whether a claw can run with the gateway off; an adapter from outside the tree need not declare it."""
    return getattr(claw, "has_own_config", Adapter.has_own_config)
