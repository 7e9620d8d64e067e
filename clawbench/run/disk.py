"""Free disk space. A full disk breaks every running case, so no case begins below a reserve."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import docker

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"))


def data_root(client: docker.DockerClient, info: Mapping[str, Any]) -> Path | None:
    """The folder of the engine's images and containers; None if it is not on this machine.

    Args:
        client: the engine.
        info: the engine's own description, as in `docker info`.
    """
    folder = Path(info.get("DockerRootDir") or "")
    # Docker Desktop's engine runs in a virtual machine, which has another kernel and other folders
    if not folder.is_absolute() or info.get("KernelVersion") != os.uname().release:
        return None
    return folder if str(client.api.base_url).startswith("http+docker://") and folder.is_dir() else None


def shortage(reserve: int, engine: Path | None, artifacts: Path) -> str | None:
    """Which disk has too little free space, and what to do; None if there is enough.

    Args:
        reserve: bytes that must be free on the engine's disk; a tenth of that must be free on the artifacts' disk.
        engine: the engine's folder, if it is on this machine.
        artifacts: the folder of all runs, which need not exist yet.
    """
    while not artifacts.exists():
        artifacts = artifacts.parent
    places = [("the engine's disk", engine, reserve), ("the artifacts' disk", artifacts, reserve // 10)]
    for what, folder, needed in places:
        if folder is not None and (free := shutil.disk_usage(folder).free) < needed:
            return (
                f"{what} ({folder}) has {shown(free)} free, and --disk-reserve wants {shown(needed)}. Free some "
                "space (`docker system df` shows what images take, `--image-policy` limits it) or give a smaller "
                "reserve"
            )
    return None


def shown(size: float) -> str:
    """A number of bytes in a readable unit."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"
