"""Where claws' runtimes are on the host, and which Python runs them inside a container.

`CLAWBENCH_HOME` (default: `.claws` in the checkout) holds what `clawbench install` installs.
Compiled packages fit one version of Python only, so a Python claw is installed once for each version that images
have; all are mounted, and the container's Python takes its own. `CLAW_PYTHON_HOME` names a standalone Python
tree that is mounted into containers, for images that have no fitting Python; where it is not set, a tree that
`clawbench install python` (`uv python install 3.12`) made is taken. Without one, or where it is set to nothing,
the image's `python3` runs the claw.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from adapters.base import Mount, NotInstalledError

MARKER = "clawbench-runtime.json"
"""Written last into an installed runtime's folder: a folder without it is no install."""
PACKAGES = "site-packages"
"""The folder of a runtime that Python imports from."""
INSTALLED = "clawbench install"
"""What a runtime in the default place was found by."""

MOUNTED = "/opt/claw"
"""The folder, inside the container, below which runtimes are mounted."""

UV_PYTHON = "3.12"
"""The version of a standalone Python that uv is asked for."""

_PYTHON_MOUNT = f"{MOUNTED}/python"


@dataclass(frozen=True)
class ContainerPython:
    """The Python that runs a claw inside a container."""

    version: str | None
    """Major and minor, as in `3.11`; None is whatever the image has."""
    command: str
    """What to run it by, inside the container."""
    mounts: tuple[Mount, ...]


def default_home() -> Path:
    """The folder of installed runtimes; it need not exist."""
    override = os.environ.get("CLAWBENCH_HOME")
    return Path(override).expanduser().absolute() if override else Path(__file__).parents[1] / ".claws"


def container_python() -> ContainerPython:
    """The tree that `CLAW_PYTHON_HOME` names or uv made, else the image's own `python3`.

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
            f"CLAW_PYTHON_HOME={override or tree} is no standalone Python tree, which has exactly one "
            "bin/python3.N; `clawbench install python` makes such a tree where the variable is not set"
        )
    command = f"{_PYTHON_MOUNT}/bin/python{versions[0]}"
    return ContainerPython(versions[0], command, (Mount(tree, _PYTHON_MOUNT),))


def _tree_of_uv() -> Path | None:
    """The newest tree of that version that `uv python install` left in its place."""
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
        version: The claw's version.
        python: The Python that will run it, as in `3.11`.
    """
    return f"{version}-py{python}"


def installed_pythons(folder: Path, version: str) -> list[str]:
    """The versions of Python that a claw's version is installed for, below the claw's folder."""
    prefix = folder_name(version, "")
    return sorted(path.parent.name.removeprefix(prefix) for path in folder.glob(f"{prefix}*/{MARKER}"))


def packages_of(environment: Path, package: str) -> Path | None:
    """The folder that a package is imported from, in a `pip install --target` folder or a venv."""
    candidates = (
        environment,
        environment / PACKAGES,
        *sorted(environment.glob("lib/python3*/site-packages")),
    )
    return next((folder for folder in candidates if (folder / package / "__init__.py").is_file()), None)


def distribution_version(packages: Path, distribution: str) -> str:
    """The version of a distribution (name as in its folder: `nanobot_ai`), from its metadata's name.

    Raises:
        NotInstalledError: no metadata of it is there.
    """
    names = [path.name for path in packages.glob(f"{distribution}-*.dist-info")]
    if not names:
        raise NotInstalledError(f"{packages} has no metadata of {distribution}, so its version is unknown")
    return names[0].removeprefix(f"{distribution}-").removesuffix(".dist-info")
