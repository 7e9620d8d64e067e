"""generic (PyPI `genericagent`, or a checkout of lsdefine/GenericAgent): a small Python agent.

Its peculiarities: it writes into the folder that it runs from, so every case gets a copy (`generic_code.py`); its
working folder is there and not in the repository, which `prompts/generic.txt` tells the model; it exits 0 even if
the model failed, so its exit code says nothing; and it reports its usage only in its output.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from adapters.base import CommandResult, NotInstalledError, Runtime, Shell, Task, TokenUsage
from adapters.built_in_adapter import run_claw
from adapters.generic.generic_code import checkout_files, checkout_version, is_agent, package_files
from adapters.python_adapter import PythonAdapter, python_hint
from adapters.runtimes import INSTALLED, PACKAGES, container_python, folder_name, installed_pythons

_REPO_VARIABLE = "GA_REPO_PATH"
_REPO_DEFAULT = Path("/opt/genericagent")
_CONFIG = "mykey.json"
_OWN_IN_PYTHON = "mykey.local.py"
_INPUT = re.compile(rb"^\[Cache\] input=(\d+) cached=(\d+)\s*$", re.MULTILINE)
_CLAUDE_INPUT = re.compile(rb"^\[Cache\] input=(\d+) creation=(\d+) read=(\d+)\s*$", re.MULTILINE)
_REPLY = re.compile(r"^=== Response === [\d: -]+\n", re.MULTILINE)
_OUTPUT = re.compile(rb"^\[Output\] tokens=(\d+)", re.MULTILINE)


class GenericAdapter(PythonAdapter):
    """generic, as `base.Adapter` describes."""

    name: ClassVar[str] = "generic"
    version: ClassVar[str] = "1.0.7"
    package: ClassVar[str] = "genericagent"
    distribution: ClassVar[str] = "genericagent"
    variable: ClassVar[str] = "GA_ENV_PATH"
    default: ClassVar[str] = "/opt/genericagent-env"
    probe: ClassVar[tuple[str, ...]] = ("requests", "bs4")
    install_hint: ClassVar[str] = (
        f"{python_hint(name, variable, distribution)}, or let {_REPO_VARIABLE} name a checkout of "
        f"lsdefine/GenericAgent and {variable} an environment with requests and beautifulsoup4"
    )
    config_name: ClassVar[str] = _CONFIG
    credential_files: ClassVar[tuple[str, ...]] = ()
    prompt_file: ClassVar[str] = "generic.txt"
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
    apis: ClassVar[tuple[str, ...]] = ("chat", "messages", "responses")

    @property
    def _agent_folder(self) -> str:
        """The case's copy of GenericAgent, inside the container."""
        return f"{self.folder}/agent"

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`: a checkout that a variable names, else the package, else the default checkout."""
        checkout = self._checkout()
        if checkout is None:
            return super().packages()
        self.packages()  # a checkout without its libraries does not run
        return checkout

    def packages(self) -> Runtime:
        """See `PythonAdapter.packages`; a checkout brings its own code and needs only its libraries."""
        return super().packages() if self._checkout() is None else self.find_packages("requests", "requests")

    def _checkout(self) -> Runtime | None:
        """The checkout in use; None if it is the package."""
        if override := os.environ.get(_REPO_VARIABLE):
            folder, found_by = Path(override).expanduser().absolute(), _REPO_VARIABLE
            if not is_agent(folder):
                raise NotInstalledError(f"{found_by}: {folder} holds no GenericAgent; {self.install_hint}")
            return Runtime(checkout_version(folder), folder, found_by)
        try:
            super().packages()
        except NotInstalledError as error:
            if not is_agent(_REPO_DEFAULT):
                raise NotInstalledError(f"{error}, or let {_REPO_VARIABLE} name a checkout") from None
            return Runtime(checkout_version(_REPO_DEFAULT), _REPO_DEFAULT, f"{_REPO_VARIABLE}'s default")
        return None

    def code(self) -> Mapping[str, bytes]:
        """GenericAgent's own files, by relative path (raises NotInstalledError)."""
        if (checkout := self._checkout()) is not None:
            return checkout_files(checkout.location)
        packages = self.packages()
        location = packages.location
        if packages.found_by == INSTALLED:
            python = container_python().version or installed_pythons(location, self.version)[0]
            location = location / folder_name(self.version, python) / PACKAGES
        return package_files(location / self.package)

    def config_file(self) -> Path:
        """See `Adapter.config_file`; the user's own may be written in Python."""
        found, in_python = super().config_file(), self.template.with_name(_OWN_IN_PYTHON)
        return in_python if found == self.template and in_python.exists() else found

    def files(self, config: Path, task: Task, variables: Mapping[str, str]) -> dict[str, bytes]:  # noqa: ARG002
        """See `BuiltInAdapter.files`."""
        from adapters.generic.generic_config import own_config, render_config  # noqa: PLC0415 - imports pydantic

        if task.base_url is None:
            # in Python, since only the JSON file is copied to the artifacts
            name, content = "mykey.py", own_config(config, task)
        else:
            name, content = _CONFIG, json.dumps(render_config(config, task), indent=2).encode()
        return {f"agent/{path}": data for path, data in {**self.code(), name: content}.items()}

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        launcher = Path(__file__).with_name("generic_launch.py")
        numbers = [str(task.llm_no), str(task.max_turns)]
        command = self.launch(shell, task, launcher, [self._agent_folder], numbers)
        return run_claw(shell, task, command, {"PYTHONDONTWRITEBYTECODE": "1"})

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`: every message to and from the model, and the agent's notes."""
        for folder in ("temp", "memory"):
            shell.fetch(f"{self._agent_folder}/{folder}", destination / folder)
        shell.fetch(f"{self._agent_folder}/{_CONFIG}", destination)

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the output
        """See `Adapter.usage`; the package reports no output tokens."""
        outputs = [int(count) for count in _OUTPUT.findall(stdout)]
        output = sum(outputs) if outputs else None
        if of_claude := _CLAUDE_INPUT.findall(stdout):
            uncached, written, read = (sum(map(int, counts)) for counts in zip(*of_claude, strict=True))
            return TokenUsage(uncached, read, written, output)
        if not (inputs := _INPUT.findall(stdout)):
            return None
        total, read = (sum(map(int, counts)) for counts in zip(*inputs, strict=True))
        return TokenUsage(total - read, read, None, output)

    def final_message(self, session: Path, stdout: bytes) -> str:  # noqa: ARG002 - some of the output is rewritten
        """See `Adapter.final_message`: the last reply in its log of the model's."""
        logs = sorted(session.glob("temp/model_responses_*.txt"))
        return _last_reply(logs[0].read_bytes().decode("utf-8", "replace")) if len(logs) == 1 else ""


def _last_reply(log: str) -> str:
    """The text of the last reply in a log; "" if there is none, or it calls a tool."""
    *before, last = _REPLY.split(log)
    if not before:
        return ""
    text = last.removesuffix("\n\n")
    try:
        blocks = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text  # sessions that describe tools in the prompt log the plain text
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return text
    if any(block.get("type") == "tool_use" for block in blocks):
        return ""
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
