"""The adapter protocol: what fits one claw to the suite, and all that a claw may differ in.

The five methods of the paper (create the agent, send the task, back up the session, delete the agent,
supply the container's arguments; Claw-SWE-Bench, section 2.2) plus what the suite's promises need: where
the runtime is, which files the claw drops into the repository, what it says it used.
Nothing in here starts a container: an adapter is handed a `Shell` into a running one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

APIS = ("chat", "responses", "messages")
"""The wire formats: OpenAI's chat/completions and responses, Anthropic's messages."""

STATE_DIR = "/claw"
"""A folder inside the container, outside the repository, for the claw's config, state and session."""


class NotInstalledError(LookupError):
    """A claw's runtime was not found; the message says how to get it."""


class BadOptionError(ValueError):
    """The claw can't do what an option asks of it."""


@dataclass(frozen=True)
class Runtime:
    """An installed claw."""

    version: str
    location: Path
    found_by: str
    """What led to it: the name of an environment variable, or `clawbench install`."""


@dataclass(frozen=True)
class Mount:
    """A host folder, or one file, that the container sees read-only."""

    source: Path
    target: str


@dataclass(frozen=True)
class ContainerArguments:
    """What a claw's runtime needs of its container."""

    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """One case as the claw sees it."""

    prompt: str
    workdir: str
    """The repository, inside the container."""
    base_url: str | None
    """The gateway's address inside the container, ending in `/v1`, before `/chat/completions`, `/responses` and
    `/messages`. None with the gateway off: the claw takes its user's own configuration and credentials."""
    model: str
    """The model's name as the claw must send it. With the gateway off it is what the user's own configuration
    calls it, and "" is the one that this configuration names."""
    timeout: float
    """The budget: seconds of wall clock."""
    max_turns: int
    llm_no: int = 0
    api: str = "chat"
    """The wire format to speak with the gateway, one of the adapter's `apis`."""
    context_window: int | None = None
    """Tokens, as the provider declares them for the model; None: what the claw's config says stays."""


@dataclass(frozen=True)
class CommandResult:
    """How a command in the container ended."""

    exit_code: int | None
    """None where it was ended at its deadline."""
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether the deadline ended it."""
        return self.exit_code is None


class Shell(Protocol):
    """An adapter's hands inside the container."""

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        """Run a command as root; at the deadline everything in the container is ended."""

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        """Write files (relative path: content) below a folder, making folders on the way."""

    def fetch(self, path: str, destination: Path) -> list[Path]:
        """Copy a file or a whole folder out of the container, also after it was frozen.

        Only regular files are copied, links are not followed. A path that does not exist gives [].
        """


@dataclass(frozen=True)
class TokenUsage:
    """Tokens in four classes that do not overlap; None is unknown, never 0."""

    input: int | None = None
    """Prompt tokens without the cached ones."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None


class Adapter(Protocol):
    """One claw. Instances are stateless: everything about a case comes with the call.

    What has a value here need not be declared.
    """

    name: ClassVar[str]
    install_hint: ClassVar[str]
    """How a user gets the runtime."""
    prompt_file: ClassVar[str]
    """The template in `prompts/`; anything but `default.txt` may only add tool-name guidance."""
    droppings: ClassVar[tuple[str, ...]]
    """What the claw leaves in the repository: .gitignore-style patterns anchored at its root (`/memory/`)."""
    allowed_tools: ClassVar[tuple[str, ...] | None]
    """The tools that reach the model, by the names that the claw sends; the gateway takes the others out of its
    requests. None: all of them."""
    min_memory: ClassVar[str]
    """The least memory that the claw runs in, as Docker writes it (`512m`)."""
    min_pids: ClassVar[int]
    apis: ClassVar[tuple[str, ...]] = ("chat",)
    """The wire formats of `APIS` that the claw can speak, those that it is best at first; read by `apis_of`."""
    has_own_config: ClassVar[bool] = False
    """Whether it can be run with the gateway off, on its user's own configuration and credentials."""

    def runtime(self) -> Runtime:
        """Find the installed runtime, without starting anything slow.

        Raises:
            NotInstalledError: it was not found, or what a variable names is not it.
        """

    def config_file(self) -> Path:
        """The config template in use; its content tells two settings of the claw apart."""

    def container_arguments(self) -> ContainerArguments:
        """Read-only mounts and environment for the runtime (raises NotInstalledError)."""

    def create_agent(self, shell: Shell, task: Task) -> None:
        """Render the config against the gateway, or the user's own, and write it below `STATE_DIR`.

        Raises:
            BadOptionError: the config, or the user's own that the gateway's absence asks for, can't be used.
        """

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """Run the claw headless on the prompt and return when it ended or its budget was used up.

        Raises:
            BadOptionError: the prompt or an option is one that this claw can't take.
        """

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """Copy the session's files, whole, to a folder on the host; the container may be frozen."""

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:
        """What the claw itself says that it used, from its session or output; None if it doesn't tell."""

    def final_message(self, session: Path, stdout: bytes) -> str:
        """The text that the claw ended with, as exactly as it can be had; "" where it came to none.

        Args:
            session: what `backup_session` copied.
            stdout: of `send_task`; claws may wrap or decorate what they print.
        """

    def delete_agent(self, shell: Shell) -> None:
        """Remove what `create_agent` made outside the container, if anything."""


def apis_of(claw: Adapter) -> tuple[str, ...]:
    """The wire formats that a claw can speak, also of one from outside the tree that does not tell."""
    return getattr(claw, "apis", Adapter.apis)


def has_own_config(claw: Adapter) -> bool:
    """Whether a claw can be run with the gateway off; one from outside the tree must say so."""
    return getattr(claw, "has_own_config", Adapter.has_own_config)
