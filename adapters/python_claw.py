"""What claws that are Python distributions have in common: where the packages are, and whether they fit.

Such a claw is installed by `clawbench install` once for each version of Python that images have, or a variable
names an environment of the user's own. Either is mounted read-only; the container's Python (its own, or the tree
of `CLAW_PYTHON_HOME`) imports from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.base import STATE_DIR, Mount, NotInstalledError, Runtime, Shell, Task
from adapters.prompts import prompt_bytes
from adapters.runtimes import (
    INSTALLED,
    MOUNTED,
    PACKAGES,
    container_python,
    default_home,
    distribution_version,
    folder_name,
    installed_pythons,
    packages_of,
)

_CHECK_TIMEOUT = 120.0

# Prints the container's environment if the modules can be imported.
_CHECK = """
import json, os, sys
version = "{}.{}".format(*sys.version_info)
sys.path.insert(0, sys.argv[1].format(version))
try:
    for name in sys.argv[2:]:
        __import__(name)
except Exception as error:
    sys.exit("Python " + version + ": " + str(error))
print(json.dumps(dict(os.environ)))
"""


@dataclass(frozen=True)
class PythonClaw:
    """The packages of one Python claw."""

    name: str
    version: str
    """The version that `clawbench install` installs."""
    package: str
    """A package that every environment of the claw holds."""
    distribution: str
    """The distribution whose version is the claw's, as its metadata's folder names it."""
    variable: str
    """The environment variable that names a user's own environment."""
    default: str
    """Where that environment is taken from if nothing else is there."""
    probe: tuple[str, ...]
    """Modules that tell whether a Python fits: a compiled one tells its version, the machine and the C library."""

    @property
    def install_hint(self) -> str:
        """How a user gets it."""
        return (
            f"run `clawbench install {self.name}`, or let {self.variable} name a virtual environment "
            f"(or a `pip install --target` folder) that holds {self.distribution.replace('_', '-')}"
        )

    @property
    def folder(self) -> str:
        """The claw's state, inside the container."""
        return f"{STATE_DIR}/{self.name}"

    @property
    def _mount(self) -> str:
        return f"{MOUNTED}/{self.name}"

    def runtime(self) -> Runtime:
        """The packages: those that the variable names, else the installed ones, else the default place's.

        Raises:
            NotInstalledError: there are none, or what the variable names holds none.
        """
        override = os.environ.get(self.variable)
        if override:
            found = self._environment(Path(override).expanduser().absolute(), self.variable)
            if found is None:
                raise NotInstalledError(f"{self.variable}={override} holds no {self.package}; {self.install_hint}")
            return found
        wanted = container_python().version
        pythons = installed_pythons(default_home() / self.name, self.version)
        if pythons and (wanted is None or wanted in pythons):
            return Runtime(self.version, default_home() / self.name, INSTALLED)
        found = self._environment(Path(self.default), f"{self.variable}'s default")
        if found is None:
            which = f" for Python {wanted}" if wanted else ""
            raise NotInstalledError(f"{self.name} {self.version}{which} is not installed; {self.install_hint}")
        return found

    def _environment(self, folder: Path, found_by: str) -> Runtime | None:
        packages = packages_of(folder, self.package)
        if packages is None:
            return None
        return Runtime(distribution_version(packages, self.distribution), packages, found_by)

    def mounts(self) -> tuple[Mount, ...]:
        """The packages and the Python that runs them (raises NotInstalledError)."""
        return (Mount(self.runtime().location.resolve(), self._mount), *container_python().mounts)

    def imported_from(self) -> str:
        """What the container's Python imports from; "{}" stands for its version (raises NotInstalledError)."""
        if self.runtime().found_by != INSTALLED:
            return self._mount
        return f"{self._mount}/{folder_name(self.version, '{}')}/{PACKAGES}"

    def python(self, *arguments: str) -> list[str]:
        """The start of a command that runs the container's Python.

        With -I neither the repository under test nor PYTHON* variables decide what is imported, and the
        commands that the claw starts inherit no import path. With -u what it says is there although it is ended.
        """
        return [container_python().command, "-I", "-B", "-u", "-X", "utf8", *arguments]

    def with_prompt(
        self, shell: Shell, task: Task, module: str, option: str, arguments: Sequence[str]
    ) -> list[str]:
        """A command that runs a module with the task's prompt as an option's value, however long it is.

        Args:
            shell: Puts the prompt and the launcher into the container.
            task: Has the prompt.
            module: What `python -m` would run.
            option: Takes the prompt, as in `--message`.
            arguments: The other arguments, before it.

        Raises:
            BadOptionError: the prompt is one that no claw can take.
        """
        launcher, prompt = "prompt_launch.py", "prompt.txt"
        files = {
            launcher: Path(__file__).with_name(launcher).read_bytes(),
            prompt: prompt_bytes(self.name, task.prompt),
        }
        shell.put(self.folder, files)
        inside = [f"{self.folder}/{launcher}", self.imported_from(), module, f"{self.folder}/{prompt}"]
        return self.python(*inside, option, *arguments)

    def environment(self, shell: Shell) -> dict[str, str]:
        """The container's environment variables, once its Python could import the runtime.

        Raises:
            NotInstalledError: it can't; the message says what to do.
            TimeoutError: the container did not answer.
        """
        command = self.python("-c", _CHECK, self.imported_from(), *self.probe)
        result = shell.run(command, timeout=_CHECK_TIMEOUT)
        if result.timed_out:
            raise TimeoutError(f"the container's Python did not answer within {_CHECK_TIMEOUT:.0f} s")
        if result.exit_code != 0:
            said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
            raise NotInstalledError(
                f"the container's {container_python().command} can't import {self.name} "
                f"({said[-1] if said else 'no output'}). Installed for: {self._installed_for()}. Run "
                "`clawbench install python`, or let CLAW_PYTHON_HOME name a standalone Python tree, and then "
                f"`clawbench install {self.name}`, or let {self.variable} name an environment made with "
                "the container's Python"
            )
        variables = json.loads(result.stdout)
        return {str(name): str(value) for name, value in variables.items()}

    def _installed_for(self) -> str:
        found_by = self.runtime().found_by
        if found_by != INSTALLED:
            return f"whatever {found_by} was made with"
        pythons = installed_pythons(default_home() / self.name, self.version)
        return ", ".join(f"Python {version}" for version in pythons)
