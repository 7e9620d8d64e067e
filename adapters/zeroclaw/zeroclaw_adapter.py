"""zeroclaw (Rust crate `zeroclaw`): one binary, with all its state in the folder of its config file.

Its peculiarities: it takes a one-shot prompt only as an argument, so that the kernel limits the prompt's length;
it takes attachment markers in a prompt for attachments; its shell tool hides the image's environment variables
unless the config names them; a profile of its own declares which tools it offers; and after the last allowed round
it asks the model once more, without tools, for a closing text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from adapters.base import (
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
from adapters.built_in_adapter import BuiltInAdapter, require_answer
from adapters.prompts import prompt_bytes
from adapters.runtimes import INSTALLED, MARKER, MOUNTED, default_home

ALIAS = "clawbench"
"""The name of the one agent, and of its profiles."""
BINARY = "bin/zeroclaw"
"""Where the binary is in an installed runtime's folder."""
PROMPT_LIMIT = (128 << 10) - len("--message=") - 1
"""Bytes; Linux allows an argument of a process 128 KiB with its terminating zero."""
TOOLS = ("shell", "file_read", "file_write", "file_edit", "glob_search", "content_search", "git_operations")
"""Of its 44 tools, those that stay inside the case."""

_VARIABLE = "ZEROCLAW_BIN"
_DEFAULT = "/usr/local/bin/zeroclaw"
_MOUNTED = f"{MOUNTED}/zeroclaw"
_ATTACHMENT = re.compile(r"\[(?:IMAGE|AUDIO|VOICE):[^\]]*\]?")


class ZeroclawAdapter(BuiltInAdapter):
    """zeroclaw, as `base.Adapter` describes."""

    name: ClassVar[str] = "zeroclaw"
    version: ClassVar[str] = "0.8.7"
    install_hint: ClassVar[str] = (
        f"run `clawbench install zeroclaw` (it compiles for long), or let {_VARIABLE} name a zeroclaw binary"
    )
    config_name: ClassVar[str] = "config.toml"
    credential_files: ClassVar[tuple[str, ...]] = ("config.toml*",)
    allowed_tools: ClassVar[tuple[str, ...] | None] = TOOLS
    min_memory: ClassVar[str] = "256m"
    min_pids: ClassVar[int] = 32
    apis: ClassVar[tuple[str, ...]] = ("chat", "responses", "messages")

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`; the version of a binary that was not installed by the suite is its digest."""
        if override := os.environ.get(_VARIABLE):
            binary = Path(override).expanduser().absolute()
            if not _is_program(binary):
                raise NotInstalledError(f"{_VARIABLE}={override} is not a program; {self.install_hint}")
            return Runtime(_digest_of(binary), binary, _VARIABLE)
        folder = default_home() / self.name / self.version
        if (folder / MARKER).exists():
            return Runtime(self.version, folder / BINARY, INSTALLED)
        if not _is_program(Path(_DEFAULT)):
            raise NotInstalledError(f"zeroclaw {self.version} is not installed; {self.install_hint}")
        return Runtime(_digest_of(Path(_DEFAULT)), Path(_DEFAULT), f"{_VARIABLE}'s default")

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        return ContainerArguments(mounts=(Mount(self.runtime().location.resolve(), _MOUNTED),))

    def check(self, shell: Shell, task: Task) -> dict[str, str]:  # noqa: ARG002 - the same for every task
        """See `BuiltInAdapter.check`; the usual reason for a failure is that the image's C library is older."""
        failure = (
            "zeroclaw does not run in the container ({said}). It needs the machine type of the system where it "
            "was built, and a C library (glibc) that is not older than that system's: build it on an older "
            f"system, or statically, and let {_VARIABLE} name that binary"
        )
        require_answer(shell, [_MOUNTED, "--version"], failure)
        environment = require_answer(shell, ["cat", "/proc/self/environ"], "the container has no /proc ({said})")
        entries = environment.decode("utf-8", "replace").split("\0")
        return {name: value for name, is_set, value in (entry.partition("=") for entry in entries) if is_set}

    def files(self, config: Path, task: Task, variables: Mapping[str, str]) -> dict[str, bytes]:
        """See `BuiltInAdapter.files`."""
        from adapters.zeroclaw.zeroclaw_config import make_config, to_toml  # noqa: PLC0415 - imports pydantic

        return {self.config_name: to_toml(make_config(config, task, sorted(variables))).encode()}

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        size = len(prompt_bytes(self.name, task.prompt))
        if size > PROMPT_LIMIT:
            raise BadOptionError(
                f"zeroclaw can't take a prompt of {size} bytes: it takes one only as an argument, and Linux "
                f"limits that to {PROMPT_LIMIT} bytes here"
            )
        if marker := _ATTACHMENT.search(task.prompt):
            raise BadOptionError(
                f"zeroclaw can't take a prompt that contains {marker[0][:60]!r}: it would take that for an "
                "attachment"
            )
        command = [_MOUNTED, "--config-dir", self.folder, "agent", "--agent", ALIAS, f"--message={task.prompt}"]
        # the same number of threads on every machine: the default is one per core, and threads count as pids
        environment = {"TOKIO_WORKER_THREADS": "2"}
        return shell.run(command, timeout=task.timeout, environment=environment, workdir=task.workdir)

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the session
        """See `Adapter.usage`."""
        found = sorted(session.rglob("costs.jsonl"))
        return _usage_in(found[0]) if len(found) == 1 else None

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - it is all of the output
        """See `Adapter.final_message`; everything else goes to stderr."""
        return stdout.decode("utf-8", "replace").removesuffix("\n")


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _digest_of(binary: Path) -> str:
    status = binary.stat()
    return _digest(binary, status.st_size, status.st_mtime_ns)


@cache
def _digest(binary: Path, size: int, modified: int) -> str:  # noqa: ARG001 - part of the cache's key
    with binary.open("rb") as stream:
        return f"sha256-{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"


def _usage_in(costs: Path) -> TokenUsage | None:
    """The sum over all requests, one per line; an incomplete last line is ignored."""
    total, cached, written, output = [], [], [], []
    try:
        for line in costs.read_bytes().split(b"\n")[:-1]:
            row = json.loads(line)["usage"]
            total.append(row["input_tokens"])
            cached.append(row.get("cached_input_tokens"))
            written.append(row.get("cache_creation_input_tokens"))
            output.append(row["output_tokens"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None  # the claw can write anything here
    # a count that was 0, or not reported, is missing from the line
    read, write = ([count for count in counts if count is not None] for counts in (cached, written))
    if not total or not all(isinstance(count, int) for count in (*total, *read, *write, *output)):
        return None
    rest = sum(total) - sum(read) - sum(write)
    return TokenUsage(rest, sum(read) if read else None, sum(write) if write else None, sum(output))
