"""The registry, and how runtimes are found: all that needs no container."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from adapters import registry, runtimes
from adapters.base import BadOptionError, CommandResult, NotInstalledError, Shell, Task
from adapters.python_adapter import PythonAdapter

ROOT = Path(__file__).parents[2]
VARIABLES = (
    "NANOBOT_ENV_PATH",
    "HERMES_ENV_PATH",
    "GA_ENV_PATH",
    "GA_REPO_PATH",
    "CLAW_PYTHON_HOME",
    "XDG_DATA_HOME",
)


@dataclass(frozen=True)
class PythonClaw:
    """What a Python claw's packages look like."""

    name: str
    version: str
    package: str
    distribution: str
    variable: str

    def make(self, folder: Path, version: str) -> Path:
        (folder / self.package).mkdir(parents=True)
        (folder / self.package / "__init__.py").touch()
        (folder / f"{self.distribution}-{version}.dist-info").mkdir()
        return folder


PYTHON_CLAWS = (
    PythonClaw("nanobot", "0.3.5", "nanobot", "nanobot_ai", "NANOBOT_ENV_PATH"),
    PythonClaw("hermes", "0.19.0", "hermes_cli", "hermes_agent", "HERMES_ENV_PATH"),
    PythonClaw("generic", "1.0.7", "genericagent", "genericagent", "GA_ENV_PATH"),
)
each_python_claw = pytest.mark.parametrize("claw", PYTHON_CLAWS, ids=lambda claw: claw.name)


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No runtime is installed and no variable names one."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    return tmp_path


def test_the_five_claws_are_known_in_their_order() -> None:
    assert registry.CLAWS == ("openclaw", "hermes", "nanobot", "zeroclaw", "generic")


def test_an_unknown_claw_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadOptionError, match="openclaw, hermes, nanobot"):
        registry.installed("nonobot")


def imported_by(code: str) -> set[str]:
    """The modules that a fresh Python has imported after some code that starts no process."""
    code = f"import subprocess, sys; subprocess.Popen = None; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_asking_what_is_installed_is_cheap() -> None:
    """Every worker asks before it collects: nothing but the standard library is imported."""
    code = "from adapters import prompts, registry; [registry.installed(name) for name in registry.CLAWS]"
    roots = {name.partition(".")[0] for name in imported_by(code) - imported_by("pass")}
    assert roots - sys.stdlib_module_names == {"adapters", "common"}


def test_listing_the_claws_imports_no_adapter() -> None:
    found = imported_by("from adapters import registry; registry.claws()")
    assert not [name for name in found if name.startswith("adapters.") and name.count(".") > 1]


@each_python_claw
def test_nothing_installed(empty_home: Path, claw: PythonClaw) -> None:
    assert not registry.installed(claw.name)
    with pytest.raises(NotInstalledError, match=f"clawbench install {claw.name}.*{claw.variable}"):
        registry.adapter(claw.name).container_arguments()


@each_python_claw
def test_an_installed_runtime_is_found(empty_home: Path, claw: PythonClaw) -> None:
    folder = empty_home / claw.name / runtimes.folder_name(claw.version, "3.11")
    claw.make(folder / runtimes.PACKAGES, claw.version)
    assert not registry.installed(claw.name), "without its marker it is half an install"
    (folder / runtimes.MARKER).write_text("{}")
    adapter = registry.adapter(claw.name)
    assert (adapter.runtime().version, adapter.runtime().found_by) == (claw.version, "clawbench install")
    assert adapter.container_arguments().mounts[0].source == (empty_home / claw.name).resolve()


@each_python_claw
@pytest.mark.parametrize("inside", [".", "lib/python3.12/site-packages"])
def test_a_variable_names_a_target_folder_or_a_venv(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, claw: PythonClaw, inside: str
) -> None:
    packages = claw.make(empty_home / "env" / inside, "0.2.9")
    monkeypatch.setenv(claw.variable, str(empty_home / "env"))
    runtime = registry.adapter(claw.name).runtime()
    assert (runtime.version, runtime.found_by) == ("0.2.9", claw.variable)
    assert runtime.location.samefile(packages)


@each_python_claw
def test_variables_that_name_nothing_are_refused(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, claw: PythonClaw
) -> None:
    monkeypatch.setenv(claw.variable, str(empty_home / "gone"))
    with pytest.raises(NotInstalledError, match=f"{claw.variable}=.*gone"):
        registry.adapter(claw.name).runtime()
    monkeypatch.delenv(claw.variable)
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(empty_home / "gone"))
    with pytest.raises(NotInstalledError, match=r"CLAW_PYTHON_HOME=.*gone"):
        registry.adapter(claw.name).runtime()


def make_tree(tree: Path) -> Path:
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "python3.12").touch()
    (tree / "bin" / "python3.12-config").touch()
    return tree


def test_a_standalone_python_is_mounted_and_decides_which_runtime_fits(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claw, tree = PYTHON_CLAWS[0], make_tree(empty_home / "python")
    monkeypatch.setenv("CLAW_PYTHON_HOME", str(tree))
    for python in ("3.11", "3.12"):
        assert not registry.installed(claw.name), "nothing, or installed for another Python"
        folder = empty_home / claw.name / runtimes.folder_name(claw.version, python)
        claw.make(folder / runtimes.PACKAGES, claw.version)
        (folder / runtimes.MARKER).touch()
    sources = [mount.source for mount in registry.adapter(claw.name).container_arguments().mounts]
    assert sources == [(empty_home / claw.name).resolve(), tree.resolve()]
    assert runtimes.container_python().command.endswith("/bin/python3.12")


class LocalShell:
    """Runs an adapter's command with this Python."""

    def run(self, command: Sequence[str], timeout: float) -> CommandResult:  # noqa: ARG002
        done = subprocess.run([sys.executable, *command[1:]], capture_output=True, check=False)
        return CommandResult(done.returncode, done.stdout, done.stderr, 0.0)


def test_what_an_import_prints_is_not_taken_for_the_environment(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = PYTHON_CLAWS[0].make(empty_home / "packages", "0.3.5")
    loud = "import os, atexit\nprint('a banner')\nos.write(1, b'raw')\natexit.register(print, 'goodbye')\n"
    (folder / "loud.py").write_text(loud)
    monkeypatch.setenv("NANOBOT_ENV_PATH", str(folder))
    monkeypatch.setenv("OF_THE_IMAGE", "ä")
    claw = registry.adapter("nanobot")
    assert isinstance(claw, PythonAdapter)
    monkeypatch.setattr(type(claw), "import_path", lambda _self: str(folder))
    monkeypatch.setattr(type(claw), "modules_for", lambda _self, _task: ("loud",))
    variables = claw.check(cast("Shell", LocalShell()), cast("Task", None))
    assert variables["OF_THE_IMAGE"] == "ä"


def test_the_newest_python_of_uv_is_the_default_and_an_empty_variable_means_the_images(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runtimes.container_python().command == "python3"
    suffix = f"linux-{platform.machine()}-gnu"
    for version in ("3.12.9", "3.12.11", "3.13.1"):
        make_tree(empty_home / "uv" / f"cpython-{version}-{suffix}")
    (empty_home / "uv" / f"cpython-3.12-{suffix}").symlink_to(f"cpython-3.12.9-{suffix}")
    (mount,) = runtimes.container_python().mounts
    assert mount.source.name == f"cpython-3.12.11-{suffix}"
    monkeypatch.setenv("CLAW_PYTHON_HOME", "")
    assert runtimes.container_python() == runtimes.ContainerPython(None, "python3", ())
