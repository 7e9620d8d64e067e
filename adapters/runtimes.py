"""Where the claws' runtimes are on the host, and which Python runs them inside a container.

`CLAWBENCH_HOME` (default: `.claws` in the checkout) holds what `clawbench install` installs. Compiled packages fit
only one version of Python, so a Python claw is installed once for each version that images have; all are mounted,
and the container's Python uses its own.

`CLAW_PYTHON_HOME` names a standalone Python tree that is mounted into containers, for images without a fitting
Python. If it is not set, a tree from `clawbench install python` (`uv python install 3.12`) is used. Without such a
tree, or if the variable is empty, the image's `python3` runs the claw.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from adapters.base import Mount, NotInstalledError

MARKER = "clawbench-runtime.json"
"""A file that is written last into an installed runtime's folder: without it the install is incomplete."""
PACKAGES = "site-packages"
"""The folder of a runtime that Python imports from."""
INSTALLED = "clawbench install"
"""How a runtime in the default place was found (`Runtime.found_by`)."""

MOUNTED = "/opt/claw"
"""The folder, inside the container, below which runtimes are mounted."""

UV_PYTHON = "3.12"
"""The version of the standalone Python that uv installs."""

_PYTHON_MOUNT = f"{MOUNTED}/python"


@dataclass(frozen=True)
class ContainerPython:
    """The Python that runs a claw inside a container."""

    version: str | None
    """Major and minor, as in `3.11`; None means the version that the image has."""
    command: str
    """The command that runs it, inside the container."""
    mounts: tuple[Mount, ...]


def default_home() -> Path:
    """The folder of installed runtimes; it need not exist."""
    override = os.environ.get("CLAWBENCH_HOME")
    return Path(override).expanduser().absolute() if override else Path(__file__).parents[1] / ".claws"


def container_python() -> ContainerPython:
    """The tree that `CLAW_PYTHON_HOME` names or uv installed, else the image's own `python3`.

    Raises:
        NotInstalledError: `CLAW_PYTHON_HOME` names no Python tree.
    """
    override = os.environ.get("CLAW_PYTHON_HOME")
    tree = _tree_of_uv() if override is None else Path(override).expanduser().resolve()
    if override == "" or tree is None:
        return ContainerPython(None, "python3", ())
    versions = [
        match[1]
        for path in sorted(tree.glob("bin/python3.*"))
        if (match := re.fullmatch(r"python(3\.\d+)", path.name))
    ]
    if len(versions) != 1:
        raise NotInstalledError(
            f"CLAW_PYTHON_HOME={override or tree} is not a standalone Python tree, which has exactly "
            "one bin/python3.N; `clawbench install python` makes such a tree if the variable is not set"
        )
    command = f"{_PYTHON_MOUNT}/bin/python{versions[0]}"
    return ContainerPython(versions[0], command, (Mount(tree, _PYTHON_MOUNT),))


def _tree_of_uv() -> Path | None:
    """The newest tree of that version that `uv python install` made."""
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "uv", "python")
    folder = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data).expanduser()
    trees = {
        int(match[1]): path.resolve()
        for path in folder.glob(f"cpython-{UV_PYTHON}.*-linux-{platform.machine()}-gnu")
        if (match := re.match(rf"cpython-{re.escape(UV_PYTHON)}\.(\d+)-", path.name))
    }
    return trees[max(trees)] if trees else None


def folder_name(version: str, python: str) -> str:
    """The name, below the claw's folder, of a Python claw's runtime.

    Args:
        version: the claw's version.
        python: the version of the Python that will run it, as in `3.11`.
    """
    return f"{version}-py{python}"


def installed_pythons(folder: Path, version: str) -> list[str]:
    """The versions of Python for which a claw's version is installed below the claw's folder."""
    prefix = folder_name(version, "")
    return sorted(path.parent.name.removeprefix(prefix) for path in folder.glob(f"{prefix}*/{MARKER}"))


def packages_of(environment: Path, package: str) -> Path | None:
    """The folder that a package is imported from, in a `pip install --target` folder or a venv."""
    candidates = (environment, environment / PACKAGES, *sorted(environment.glob("lib/python3*/site-packages")))
    return next((folder for folder in candidates if (folder / package / "__init__.py").is_file()), None)


def distribution_version(packages: Path, distribution: str) -> str:
    """The version of a distribution (name as in its folder: `nanobot_ai`), from its metadata's name.

    Raises:
        NotInstalledError: its metadata is missing.
    """
    names = [path.name for path in packages.glob(f"{distribution}-*.dist-info")]
    if not names:
        raise NotInstalledError(f"{packages} has no metadata for {distribution}, so its version is unknown")
    return names[0].removeprefix(f"{distribution}-").removesuffix(".dist-info")
