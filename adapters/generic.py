"""generic (PyPI `genericagent`, or a checkout of lsdefine/GenericAgent): a small Python agent.

What is particular to it: it writes into the folder that it runs from, so that every case gets a copy
(`generic_code.py`); its working folder is there and not in the repository, which `prompts/generic.txt` tells the
model; it exits 0 when the model failed, so its exit code says nothing; it says what it used in its output alone.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from adapters import configs, own
from adapters.base import (
    CommandResult,
    ContainerArguments,
    NotInstalledError,
    Runtime,
    Shell,
    Task,
    TokenUsage,
)
from adapters.configs import CONFIGS
from adapters.generic_code import checkout_files, checkout_version, is_agent, package_files
from adapters.generic_config import APIS, own_config, read_settings, render_config
from adapters.prompts import prompt_bytes
from adapters.python_claw import PythonClaw
from adapters.runtimes import INSTALLED, PACKAGES, container_python, folder_name, installed_pythons

VERSION = "1.0.7"
"""The version that `clawbench install generic` installs."""

CONFIG_FOLDER = CONFIGS / "generic"

_REPO_VARIABLE = "GA_REPO_PATH"
_REPO_DEFAULT = Path("/opt/genericagent")
_PACKAGE = "genericagent"
_CLAW = PythonClaw(
    name="generic",
    version=VERSION,
    package=_PACKAGE,
    distribution=_PACKAGE,
    variable="GA_ENV_PATH",
    default="/opt/genericagent-env",
    probe=("requests", "bs4"),
)
_DEPENDENCIES = replace(_CLAW, package="requests", distribution="requests")
"""For a checkout, which brings its own code: what it imports, from the same places."""

_AGENT = f"{_CLAW.folder}/agent"
_CONFIG = "mykey.json"
_OWN_IN_PYTHON = "mykey.local.py"
_INPUT = re.compile(rb"^\[Cache\] input=(\d+) cached=(\d+)\s*$", re.MULTILINE)
_CLAUDE_INPUT = re.compile(rb"^\[Cache\] input=(\d+) creation=(\d+) read=(\d+)\s*$", re.MULTILINE)
_REPLY = re.compile(r"^=== Response === [\d: -]+\n", re.MULTILINE)
_OUTPUT = re.compile(rb"^\[Output\] tokens=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class _Agent:
    """The GenericAgent in use."""

    runtime: Runtime
    libraries: PythonClaw
    is_checkout: bool

    def files(self) -> Mapping[str, bytes]:
        """Its code."""
        location = self.runtime.location
        if self.is_checkout:
            return checkout_files(location)
        if self.runtime.found_by == INSTALLED:
            python = container_python().version or installed_pythons(location, VERSION)[0]
            location = location / folder_name(VERSION, python) / PACKAGES
        return package_files(location / _PACKAGE)


class GenericAdapter:
    """generic on the protocol of `base.Adapter`."""

    name: ClassVar[str] = "generic"
    install_hint: ClassVar[str] = (
        f"{_CLAW.install_hint}, or let {_REPO_VARIABLE} name a checkout of lsdefine/GenericAgent and "
        f"{_CLAW.variable} an environment with requests and beautifulsoup4"
    )
    prompt_file: ClassVar[str] = "generic.txt"
    droppings: ClassVar[tuple[str, ...]] = ()
    # the others need a browser or a user, or are for the next session
    allowed_tools: ClassVar[tuple[str, ...] | None] = (
        "code_run",
        "file_patch",
        "file_read",
        "file_write",
        "update_working_checkpoint",
    )
    min_memory: ClassVar[str] = "256m"
    min_pids: ClassVar[int] = 32
    apis: ClassVar[tuple[str, ...]] = APIS
    has_own_config: ClassVar[bool] = True

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`."""
        return self._agent().runtime

    def _agent(self) -> _Agent:
        """The checkout that a variable names, else the package, else a checkout in the default place."""
        override = os.environ.get(_REPO_VARIABLE)
        if override:
            return self._checkout(Path(override).expanduser().absolute(), _REPO_VARIABLE)
        try:
            return _Agent(_CLAW.runtime(), _CLAW, is_checkout=False)
        except NotInstalledError as error:
            if not is_agent(_REPO_DEFAULT):
                raise NotInstalledError(f"{error}, or let {_REPO_VARIABLE} name a checkout") from None
            return self._checkout(_REPO_DEFAULT, f"{_REPO_VARIABLE}'s default")

    def _checkout(self, folder: Path, found_by: str) -> _Agent:
        if not is_agent(folder):
            raise NotInstalledError(f"{found_by}: {folder} holds no GenericAgent; {self.install_hint}")
        _DEPENDENCIES.runtime()  # without them it is none
        return _Agent(Runtime(checkout_version(folder), folder, found_by), _DEPENDENCIES, is_checkout=True)

    def config_file(self) -> Path:
        """See `Adapter.config_file`."""
        found = configs.config_file(CONFIG_FOLDER, _CONFIG)
        in_python = CONFIG_FOLDER / _OWN_IN_PYTHON
        return in_python if found == CONFIG_FOLDER / _CONFIG and in_python.exists() else found

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        return ContainerArguments(mounts=self._agent().libraries.mounts())

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`.

        Raises:
            BadOptionError: the config file is not one that this claw can be run with.
            NotInstalledError: the container's Python can't import what it needs.
            TimeoutError: the container did not answer.
        """
        agent = self._agent()
        if task.base_url is None:
            # in Python, since only what is in JSON is copied to the artifacts
            config = {"mykey.py": own_config(own.own_file(self.config_file()), task)}
        else:
            rendered = render_config(read_settings(self.config_file()), task)
            config = {_CONFIG: json.dumps(rendered, indent=2).encode()}
        agent.libraries.environment(shell)
        shell.put(_AGENT, {**agent.files(), **config})

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        libraries = self._agent().libraries
        launcher, prompt = "generic_launch.py", "prompt.txt"
        files = {
            launcher: Path(__file__).with_name(launcher).read_bytes(),
            prompt: prompt_bytes(self.name, task.prompt),
        }
        shell.put(_CLAW.folder, files)
        inside = [f"{_CLAW.folder}/{launcher}", libraries.imported_from(), _AGENT, f"{_CLAW.folder}/{prompt}"]
        command = libraries.python(*inside, str(task.llm_no), str(task.max_turns))
        environment = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        if task.base_url is None:
            environment |= own.credentials()  # a mykey.py may read them
        return shell.run(command, timeout=task.timeout, environment=environment, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`: every message to and from the model, and what it noted down."""
        for folder in ("temp", "memory"):
            shell.fetch(f"{_AGENT}/{folder}", destination / folder)
        shell.fetch(f"{_AGENT}/{_CONFIG}", destination)

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the output
        """See `Adapter.usage`; the package tells no output tokens."""
        outputs = [int(count) for count in _OUTPUT.findall(stdout)]
        output = sum(outputs) if outputs else None
        if of_claude := _CLAUDE_INPUT.findall(stdout):
            uncached, written, read = (sum(map(int, counts)) for counts in zip(*of_claude, strict=True))
            return TokenUsage(uncached, read, written, output)
        if not (inputs := _INPUT.findall(stdout)):
            return None
        total, read = (sum(map(int, counts)) for counts in zip(*inputs, strict=True))
        return TokenUsage(total - read, read, None, output)

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - there some of it is rewritten
        """See `Adapter.final_message`: the last reply in its log of the model's."""
        logs = sorted(session.glob("temp/model_responses_*.txt"))
        return _last_reply(logs[0].read_bytes().decode("utf-8", "replace")) if len(logs) == 1 else ""

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def _last_reply(log: str) -> str:
    """The text of the last reply in a log; "" where there is none, or it calls a tool."""
    *before, last = _REPLY.split(log)
    if not before:
        return ""
    text = last.removesuffix("\n\n")
    try:
        blocks = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text  # a session that describes the tools in the prompt logs the text itself
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return text
    if any(block.get("type") == "tool_use" for block in blocks):
        return ""
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
