"""nanobot (PyPI `nanobot-ai`): a Python agent with its state in the folder of its config file.

What is particular to it: it takes a prompt as an argument only (`nanobot_launch.py` deals with that); it
exits 0 when the model failed, so its exit code says nothing; it fills the repository's root with files of
its own; after its last allowed round it asks the model once more, without tools, for a closing text; its
shell tool hides the image's environment variables unless they are named in the config.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import ClassVar

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
from adapters.nanobot_config import read_settings, render_config
from adapters.runtimes import (
    PACKAGES,
    ContainerPython,
    container_python,
    default_home,
    distribution_version,
    folder_name,
    installed_pythons,
    packages_of,
)

VERSION = "0.3.5"
"""The version that `clawbench install nanobot` installs."""

CONFIG_FOLDER = Path(__file__).parents[1] / "claw_configs" / "nanobot"

_FOLDER = f"{STATE_DIR}/nanobot"
_CONFIG = f"{_FOLDER}/config.json"
_PROMPT = f"{_FOLDER}/prompt.txt"
_LAUNCHER = f"{_FOLDER}/launch.py"
_MOUNT = "/opt/claw/nanobot"
_CHECK_TIMEOUT = 120.0

# Prints the names of the container's variables if the runtime can be imported: pydantic_core is compiled,
# so it tells whether the Python's version, the machine and the C library fit.
_CHECK = """
import json, os, sys
version = "{}.{}".format(*sys.version_info)
sys.path.insert(0, sys.argv[1].format(version))
try:
    import nanobot, pydantic_core
except Exception as error:
    sys.exit("Python " + version + ": " + str(error))
print(json.dumps(sorted(os.environ)))
"""


class NanobotAdapter:
    """nanobot on the protocol of `base.Adapter`."""

    name: ClassVar[str] = "nanobot"
    install_hint: ClassVar[str] = (
        "run `clawbench install nanobot`, or let NANOBOT_ENV_PATH name a virtual environment "
        "(or a `pip install --target` folder) that holds nanobot-ai"
    )
    prompt_file: ClassVar[str] = "default.txt"
    droppings: ClassVar[tuple[str, ...]] = (
        "/.nanobot/",
        "/AGENTS.md",
        "/HEARTBEAT.md",
        "/SOUL.md",
        "/USER.md",
        "/cron/jobs.json",
        "/memory/.cursor",
        "/memory/.dream_cursor",
        "/memory/MEMORY.md",
        "/memory/history.jsonl",
        "/prompts/README.md",
    )
    min_memory: ClassVar[str] = "512m"
    min_pids: ClassVar[int] = 64

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`."""
        override = os.environ.get("NANOBOT_ENV_PATH")
        if override:
            packages = packages_of(Path(override).expanduser().absolute(), "nanobot")
            if packages is None:
                raise NotInstalledError(f"NANOBOT_ENV_PATH={override} holds no nanobot; {self.install_hint}")
            return Runtime(distribution_version(packages, "nanobot_ai"), packages, "NANOBOT_ENV_PATH")
        folder = default_home() / self.name
        wanted, found = container_python().version, installed_pythons(folder, VERSION)
        if not found or (wanted is not None and wanted not in found):
            which = f" for Python {wanted}" if wanted else ""
            raise NotInstalledError(f"nanobot {VERSION}{which} is not installed; {self.install_hint}")
        return Runtime(VERSION, folder, "clawbench install")

    def config_file(self) -> Path:
        """See `Adapter.config_file`."""
        local = CONFIG_FOLDER / "config.local.json"
        return local if local.exists() else CONFIG_FOLDER / "config.json"

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`."""
        mount = Mount(self.runtime().location.resolve(), _MOUNT)
        return ContainerArguments(mounts=(mount, *container_python().mounts))

    def create_agent(self, shell: Shell, task: Task) -> None:
        """See `Adapter.create_agent`.

        Raises:
            BadOptionError: the config file is not one that this claw can be run with.
            NotInstalledError: the container's Python can't import the runtime.
            TimeoutError: the container did not answer.
        """
        variables = self._importable(shell, container_python())
        config = render_config(read_settings(self.config_file()), task, variables)
        launcher = Path(__file__).with_name("nanobot_launch.py").read_bytes()
        files = {
            PurePosixPath(_CONFIG).name: json.dumps(config, indent=2).encode(),
            PurePosixPath(_LAUNCHER).name: launcher,
        }
        shell.put(_FOLDER, files)

    def _importable(self, shell: Shell, python: ContainerPython) -> list[str]:
        """The names of the container's environment variables, once its Python could import the runtime."""
        result = shell.run([python.command, "-I", "-B", "-c", _CHECK, _packages()], timeout=_CHECK_TIMEOUT)
        if result.timed_out:
            raise TimeoutError(f"the container's Python did not answer within {_CHECK_TIMEOUT:.0f} s")
        if result.exit_code != 0:
            said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
            raise NotInstalledError(
                f"the container's {python.command} can't import nanobot ({said[-1] if said else 'no output'}). "
                f"Installed for: {self._installed_for()}. Let CLAW_PYTHON_HOME name a standalone Python tree (as "
                "`uv python install 3.12` makes) and run `clawbench install nanobot` again, or let "
                "NANOBOT_ENV_PATH name an environment made with the container's Python"
            )
        names = json.loads(result.stdout)
        return [str(name) for name in names]

    def _installed_for(self) -> str:
        if self.runtime().found_by == "NANOBOT_ENV_PATH":
            return "whatever NANOBOT_ENV_PATH was made with"
        return ", ".join(f"Python {version}" for version in installed_pythons(default_home() / self.name, VERSION))

    def send_task(self, shell: Shell, task: Task) -> CommandResult:
        """See `Adapter.send_task`."""
        shell.put(_FOLDER, {PurePosixPath(_PROMPT).name: prompt_bytes(task.prompt)})
        command = [container_python().command, "-I", "-B", "-X", "utf8", _LAUNCHER, _packages(), _PROMPT]
        options = ["--config", _CONFIG, "--workspace", task.workdir, "--no-markdown", "--logs"]
        # HOME stays the image's: that is where its toolchains keep what they need without a network
        # (~/.m2, ~/.cargo), and nanobot hands HOME on to its shell tool.
        environment = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        return shell.run(command + options, timeout=task.timeout, environment=environment, workdir=task.workdir)

    def backup_session(self, shell: Shell, destination: Path) -> None:
        """See `Adapter.backup_session`."""
        shell.fetch(_FOLDER, destination)

    def usage(self, session: Path, stdout: bytes) -> TokenUsage | None:  # noqa: ARG002 - it is in the session
        """See `Adapter.usage`."""
        found = [usage for path in sorted(session.rglob("*.jsonl")) if (usage := _last_usage(path)) is not None]
        return found[0] if len(found) == 1 else None

    def delete_agent(self, shell: Shell) -> None:
        """See `Adapter.delete_agent`: everything is inside the container and goes with it."""


def _packages() -> str:
    """What the container's Python imports nanobot from; "{}" stands for its version."""
    return _MOUNT if os.environ.get("NANOBOT_ENV_PATH") else f"{_MOUNT}/{folder_name(VERSION, '{}')}/{PACKAGES}"


def prompt_bytes(prompt: str) -> bytes:
    """The prompt as nanobot can take it.

    Raises:
        BadOptionError: it holds a NUL or half of a surrogate pair, which no argument or request can hold.
    """
    if "\0" in prompt:
        raise BadOptionError("nanobot can't take a prompt with a NUL character in it")
    try:
        return prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadOptionError(f"nanobot can't take a prompt that is not valid Unicode: {error}") from error


def _last_usage(path: Path) -> TokenUsage | None:
    """The usage in a session file's first line; None where it has none or is not a session file."""
    with path.open("rb") as stream:
        line = stream.readline(1 << 20)
    try:
        reported = json.loads(line)["metadata"]["_last_usage"]
        total = reported["input_tokens"]
        output = reported["output_tokens"]
        read, write = reported.get("cache_read_tokens"), reported.get("cache_write_tokens")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None  # the claw, which can write what it likes here, said nothing that can be read
    if not all(isinstance(count, int) for count in (total, output, read or 0, write or 0)):
        return None
    return TokenUsage(input=total - (read or 0) - (write or 0), cache_read=read, cache_write=write, output=output)
