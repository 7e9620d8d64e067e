"""Free disk: what a case needs is there before it begins, and a full disk is known as one wherever it shows.

A full engine's disk breaks every case at work on it, and mostly whatever else the machine does. So there is a
reserve, below which no case begins: a stop that costs nothing, and that the same command goes on from.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException

from workspace.errors import WorkspaceError

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"))
_FULL = "no space left on device"


def data_root(client: docker.DockerClient, info: Mapping[str, Any]) -> Path | None:
    """The folder in which the engine keeps images and containers; None where it is not on this machine.

    Args:
        client: the engine.
        info: what it says of itself.
    """
    folder = Path(info.get("DockerRootDir") or "")
    # an engine in a machine of its own, as on desktops, has another kernel; what its folder's name means here
    # says nothing of it
    if not folder.is_absolute() or info.get("KernelVersion") != os.uname().release:
        return None
    return folder if str(client.api.base_url).startswith("http+docker://") and folder.is_dir() else None


def shortage(reserve: int, engine: Path | None, artifacts: Path) -> str | None:
    """What there is too little room for, and what to do; None where there is enough.

    Args:
        reserve: bytes that must be free on the engine's disk, and a tenth of them on that of the artifacts.
        engine: the engine's folder, where it is on this machine.
        artifacts: the folder of all runs, which need not be there yet.
    """
    while not artifacts.exists():
        artifacts = artifacts.parent
    places = [("the engine's disk", engine, reserve), ("the artifacts' disk", artifacts, reserve // 10)]
    for what, folder, needed in places:
        if folder is not None and (free := shutil.disk_usage(folder).free) < needed:
            return (
                f"{what} ({folder}) has {shown(free)} free, and --disk-reserve wants {shown(needed)}. Free some "
                "(`docker system df` shows what images take, `--image-policy` keeps them to a size) or give a "
                "smaller reserve"
            )
    return None


def is_full(error: BaseException | None) -> bool:
    """Whether an error comes of a full disk: of this process, or of the engine, which tells it in words."""
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return True
        if isinstance(error, DockerException | WorkspaceError) and _FULL in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False


def shown(size: int) -> str:
    """A number of bytes for a person."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
