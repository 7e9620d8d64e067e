"""What claws that are Python distributions have in common: where their packages are, and whether they fit.

`clawbench install` installs such a claw once for each version of Python that images have, or a variable names an
environment of the user's own. Either is mounted read-only, and the container's Python (the image's own, or the
tree that `CLAW_PYTHON_HOME` names) imports from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from adapters.base import ContainerArguments, Mount, NotInstalledError, Runtime, Shell, Task
from adapters.built_in_adapter import BuiltInAdapter, require_answer
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

# Prints the container's environment if the modules can be imported. What an import prints goes to standard error.
_CHECK = """
import json, os, sys
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
version = "{}.{}".format(*sys.version_info)
sys.path.insert(0, sys.argv[1].format(version))
try:
    for name in sys.argv[2:]:
        __import__(name)
except Exception as error:
    sys.exit("Python " + version + ": " + str(error))
print(json.dumps(dict(os.environ)), file=answer, flush=True)
"""


class PythonAdapter(BuiltInAdapter):
    """An adapter of a claw that is a Python distribution."""

    package: ClassVar[str]
    """A package that every environment of the claw holds."""
    distribution: ClassVar[str]
    """The distribution whose version is the claw's, named as in its metadata's folder."""
    variable: ClassVar[str]
    """The environment variable that names an environment of the user's own."""
    default: ClassVar[str]
    """The environment to use if the variable is not set and nothing is installed."""
    probe: ClassVar[tuple[str, ...]]
    """Modules that show whether a Python fits: a compiled one shows version, machine type and C library."""

    def runtime(self) -> Runtime:
        """See `Adapter.runtime`."""
        return self.packages()

    def packages(self) -> Runtime:
        """The claw's packages (raises NotInstalledError)."""
        return self.find_packages(self.package, self.distribution)

    def find_packages(self, package: str, distribution: str) -> Runtime:
        """The environment that the variable names, else the installed one, else the default one.

        Args:
            package: must be in it.
            distribution: whose version is reported.

        Raises:
            NotInstalledError: there is none, or the variable names something else.
        """

        def at(folder: Path, found_by: str) -> Runtime | None:
            packages = packages_of(folder, package)
            return Runtime(distribution_version(packages, distribution), packages, found_by) if packages else None

        hint = python_hint(self.name, self.variable, distribution)
        if override := os.environ.get(self.variable):
            found = at(Path(override).expanduser().absolute(), self.variable)
            if found is None:
                raise NotInstalledError(f"{self.variable}={override} holds no {package}; {hint}")
            return found
        wanted, home = container_python().version, default_home() / self.name
        pythons = installed_pythons(home, self.version)
        if pythons and (wanted is None or wanted in pythons):
            return Runtime(self.version, home, INSTALLED)
        found = at(Path(self.default), f"{self.variable}'s default")
        if found is None:
            which = f" for Python {wanted}" if wanted else ""
            raise NotInstalledError(f"{self.name} {self.version}{which} is not installed; {hint}")
        return found

    def container_arguments(self) -> ContainerArguments:
        """See `Adapter.container_arguments`: the packages and the Python that runs them."""
        packages = Mount(self.packages().location.resolve(), f"{MOUNTED}/{self.name}")
        return ContainerArguments((packages, *container_python().mounts))

    def import_path(self) -> str:
        """The folder that the container's Python imports from; "{}" stands for its version."""
        folder = f"{MOUNTED}/{self.name}"
        if self.packages().found_by != INSTALLED:
            return folder
        return f"{folder}/{folder_name(self.version, '{}')}/{PACKAGES}"

    def python(self, *arguments: str) -> list[str]:
        """A command that runs the container's Python.

        With -I, neither the repository under test nor PYTHON* variables decide what is imported, and the commands
        that the claw starts inherit no import path. With -u, output is complete even if the claw is killed.
        """
        return [container_python().command, "-I", "-B", "-u", "-X", "utf8", *arguments]

    def launch(
        self, shell: Shell, task: Task, launcher: Path, before: Sequence[str], after: Sequence[str]
    ) -> list[str]:
        """A command that runs a launcher script, which takes the prompt from a file.

        Args:
            shell: puts script and prompt into the container.
            task: has the prompt.
            launcher: the script.
            before: arguments between the import path and the prompt's file.
            after: arguments behind it.

        Raises:
            BadOptionError: no claw can take this prompt.
        """
        prompt = prompt_bytes(self.name, task.prompt)
        shell.put(self.folder, {launcher.name: launcher.read_bytes(), "prompt.txt": prompt})
        script = f"{self.folder}/{launcher.name}"
        return self.python(script, self.import_path(), *before, f"{self.folder}/prompt.txt", *after)

    def with_prompt(
        self, shell: Shell, task: Task, module: str, option: str, arguments: Sequence[str]
    ) -> list[str]:
        """A command that runs a module with the prompt as an option's value, however long it is.

        Args:
            shell: puts what is needed into the container.
            task: has the prompt.
            module: what `python -m` would run.
            option: takes the prompt, as in `--message`.
            arguments: the other arguments, which come first.

        Raises:
            BadOptionError: no claw can take this prompt.
        """
        launcher = Path(__file__).with_name("prompt_launch.py")
        return self.launch(shell, task, launcher, [module], [option, *arguments])

    def check(self, shell: Shell, task: Task) -> dict[str, str]:
        """See `BuiltInAdapter.check`: the container's Python must import the runtime."""
        failure = (
            f"the container's {container_python().command} can't import {self.name} ({{said}}). "
            f"Installed for: {self._installed_for()}. Run `clawbench install python`, or let CLAW_PYTHON_HOME "
            f"name a standalone Python tree, and then `clawbench install {self.name}`; or let {self.variable} "
            "name an environment made with the container's Python"
        )
        command = self.python("-c", _CHECK, self.import_path(), *self.modules_for(task))
        variables: dict[str, str] = json.loads(require_answer(shell, command, failure))
        return variables

    def modules_for(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 - some claws need more for some tasks
        """The modules that must be importable for a task."""
        return self.probe

    def _installed_for(self) -> str:
        found_by = self.packages().found_by
        if found_by != INSTALLED:
            return f"the Python that {found_by} was made with"
        pythons = installed_pythons(default_home() / self.name, self.version)
        return ", ".join(f"Python {version}" for version in pythons)


def python_hint(claw: str, variable: str, distribution: str) -> str:
    """How a user can install a Python claw."""
    return (
        f"run `clawbench install {claw}`, or let {variable} name a virtual environment (or a `pip install "
        f"--target` folder) that holds {distribution.replace('_', '-')}"
    )
