"""zeroclaw (Rust crate `zeroclaw`): one binary, with all its state in the folder of its config file.

What is particular to it: it takes a one-shot prompt as an argument only, and a binary can't be given a longer one
than the kernel allows; it takes markers of attachments in a prompt for attachments; its shell tool hides the
image's environment variables unless they are named in the config; a profile of its own says which tools it offers;
after its last allowed round it asks the model once more, without tools, for a closing text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import ClassVar

from adapters import configs, own
from adapters.base import (
    STATE_DIR,
    BadOptionError,
    CommandResult,
    ContainerArguments,
    Mount,
    NotInstalledError,
    Runtime,
    Shell,
    Task,
    TokenUsage,
)
from adapters.configs import CONFIGS
from adapters.prompts import prompt_bytes
from adapters.runtimes import INSTALLED, MARKER, default_home
from adapters.zeroclaw_config import ALIAS, FAMILIES, TOOLS, own_config, read_settings, render_config, to_toml

VERSION = "0.8.7"
"""The version that `clawbench install zeroclaw` builds."""
BINARY = "bin/zeroclaw"
"""Where the binary is in an installed runtime's folder."""
CONFIG_FOLDER = CONFIGS / "zeroclaw"
PROMPT_LIMIT = (128 << 10) - len("--message=") - 1
"""Bytes; Linux allows an argument of a process 128 KiB with its terminating zero."""

_VARIABLE = "ZEROCLAW_BIN"
_DEFAULT = "/usr/local/bin/zeroclaw"
_MOUNTED = "/opt/claw/zeroclaw"
_FOLDER = f"{STATE_DIR}/zeroclaw"
_CONFIG = "config.toml"
_CHECK_TIMEOUT = 120.0
_ATTACHMENT = re.compile(r"\[(?:IMAGE|AUDIO|VOICE):[^\]]*\]?")


class ZeroclawAdapter:
    """zeroclaw on the protocol of `base.Adapter`."""

    name: ClassVar[str] = "zeroclaw"
    install_hint: ClassVar[str] = (
        f"run `clawbench install zeroclaw` (it compiles for long), or let {_VARIABLE} name a zeroclaw binary"
    )
    prompt_file: ClassVar[str] = "default.txt"
    droppings: ClassVar[tuple[str, ...]] = ()
    allowed_tools: ClassVar[tuple[str, ...] | None] = TOOLS
    min_memory: ClassVar[str] = "256m"
    min_pids: ClassVar[int] = 32
    apis: ClassVar[tuple[str, ...]] = tuple(FAMILIES)
    has_own_config: ClassVar[bool] = True

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`: the binary; of one that a variable names the version is a digest."""
        override = os.environ.get(_VARIABLE)
        if override:
            binary = Path(override).expanduser().absolute()
            if not _is_program(binary):
                raise NotInstalledError(f"{_VARIABLE}={override} is no program; {self.install_hint}")
            return Runtime(_digest_of(binary), binary, _VARIABLE)
        folder = default_home() / self.name / VERSION
        if (folder / MARKER).exists():
            return Runtime(VERSION, folder / BINARY, INSTALLED)
        if not _is_program(Path(_DEFAULT)):
            raise NotInstalledError(f"zeroclaw {VERSION} is not installed; {self.install_hint}")
        return Runtime(_digest_of(Path(_DEFAULT)), Path(_DEFAULT), f"{_VARIABLE}'s default")

    def config_file(self) -> Path:
        """See `Adapter.config_file`."""
        return configs.config_file(CONFIG_FOLDER, _CONFIG)

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        return ContainerArguments(mounts=(Mount(self.runtime().location.resolve(), _MOUNTED),))

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`.

        Raises:
            BadOptionError: the config file is not one that this claw can be run with.
            NotInstalledError: the binary does not run in the container.
            TimeoutError: the container did not answer.
        """
        self._check(shell)
        environment = _answer(shell, ["cat", "/proc/self/environ"]).stdout.decode("utf-8", "replace")
        names = sorted({entry.partition("=")[0] for entry in environment.split("\0") if "=" in entry})
        if task.base_url is None:
            config = own_config(own.own_file(self.config_file()), task, names)
            own.mark(shell, _FOLDER)
        else:
            config = render_config(read_settings(self.config_file()), task, names)
        shell.put(_FOLDER, {_CONFIG: to_toml(config).encode()}, mode=0o600)

    def _check(self, shell: Shell) -> None:
        """Raise NotInstalledError where the binary does not run: most often the image's C library is older."""
        result = _answer(shell, [_MOUNTED, "--version"])
        if result.exit_code != 0:
            said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
            raise NotInstalledError(
                f"zeroclaw does not run in the container ({said[0] if said else 'no output'}). It needs a C "
                "library (glibc) not older than that of the system where it was built, and the same machine type: "
                f"build it on an older system, or statically, and let {_VARIABLE} name that binary"
            )

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        size = len(prompt_bytes(self.name, task.prompt))
        if size > PROMPT_LIMIT:
            raise BadOptionError(
                f"zeroclaw can't take a prompt of {size} bytes: it takes one as an argument only, and Linux "
                f"allows an argument {PROMPT_LIMIT} bytes here"
            )
        if marker := _ATTACHMENT.search(task.prompt):
            raise BadOptionError(
                f"zeroclaw can't take a prompt with {marker[0][:60]!r} in it: it would take that for an attachment"
            )
        command = [_MOUNTED, "--config-dir", _FOLDER, "agent", "--agent", ALIAS, f"--message={task.prompt}"]
        # As many threads on every machine: by itself it starts one for each core, and threads count as pids.
        environment = {"TOKIO_WORKER_THREADS": "2"}
        return shell.run(command, timeout=task.timeout, environment=environment, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`: the costs of each request, and the trace with the tools' results."""
        shell.fetch(_FOLDER, destination)
        own.leave_out(destination, f"{_CONFIG}*")

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the session
        """See `Adapter.usage`."""
        found = sorted(session.rglob("costs.jsonl"))
        return _usage_in(found[0]) if len(found) == 1 else None

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - it is all of the output
        """See `Adapter.final_message`; what it says on the way goes to stderr."""
        return stdout.decode("utf-8", "replace").removesuffix("\n")

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _digest_of(binary: Path) -> str:
    status = binary.stat()
    return _digest(binary, status.st_size, status.st_mtime_ns)


@cache
def _digest(binary: Path, size: int, modified: int) -> str:  # noqa: ARG001 - what the cache tells two states by
    with binary.open("rb") as stream:
        return f"sha256-{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"


def _answer(shell: Shell, command: list[str]) -> CommandResult:
    result = shell.run(command, timeout=_CHECK_TIMEOUT)
    if result.timed_out:
        raise TimeoutError(f"{command[0]} did not answer within {_CHECK_TIMEOUT:.0f} s")
    return result


def _usage_in(costs: Path) -> TokenUsage | None:
    """The sum over all requests, one a line; what is behind the last line's end was not written to its end."""
    total, cached, written, output = [], [], [], []
    try:
        for line in costs.read_bytes().split(b"\n")[:-1]:
            row = json.loads(line)["usage"]
            total.append(row["input_tokens"])
            cached.append(row.get("cached_input_tokens"))
            written.append(row.get("cache_creation_input_tokens"))
            output.append(row["output_tokens"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None  # the claw, which can write what it likes here, said nothing that can be read
    # what was 0, or was not told, is not in a line
    read, write = ([count for count in counts if count is not None] for counts in (cached, written))
    if not total or not all(isinstance(count, int) for count in (*total, *read, *write, *output)):
        return None
    rest = sum(total) - sum(read) - sum(write)
    return TokenUsage(rest, sum(read) if read else None, sum(write) if write else None, sum(output))
