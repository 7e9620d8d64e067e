"""The options on images and on the disk that they fill."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import Any, Literal

DEFAULT_RESERVE = 5 << 30
"""Bytes: room for the image of one more instance, and for what a claw and its tests write."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)


def size(text: str) -> int:
    """Bytes, as Docker writes them: `200GB`, `512m`; a unit is 1024 of the one below it.

    Raises:
        ArgumentTypeError: it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no size: write it like 200GB, 512m or as a number of bytes")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))


def policy(text: str) -> Literal["keep", "prune"] | int:
    """What `--image-policy` says.

    Raises:
        ArgumentTypeError: it is neither a policy nor a size above 0.
    """
    if text == "keep":
        return "keep"
    if text == "prune":
        return "prune"
    budget = size(text) if _SIZE.fullmatch(text.strip()) else 0
    if not budget:
        raise ArgumentTypeError(f"{text!r} is none of keep, prune and a size above 0, like 200GB")
    return budget


_ARCHITECTURES = frozenset(
    ("386", "amd64", "arm", "arm64", "loong64", "mips64", "mips64le", "ppc64", "ppc64le", "riscv64", "s390x")
)
"""Those that images of Linux are published for, in the words of the OCI image index: Go's GOARCH."""


def _platform(text: str) -> str:
    matched = re.fullmatch(r"linux/([a-z0-9]+)(/v[0-9]+)?", text)
    if matched is None or matched[1] not in _ARCHITECTURES:
        raise ArgumentTypeError(f"{text!r} is no platform of Linux containers, like linux/amd64")
    return text


OPTIONS: dict[str, dict[str, Any]] = {
    "--platform": {
        "type": _platform,
        "metavar": "OS/ARCH",
        "help": "platform of images and containers, as in linux/amd64, which an engine of another architecture "
        "emulates: slowly, and where it has QEMU (default: the engine's own)",
    },
    "--image-policy": {
        "type": policy,
        "default": "keep",
        "metavar": "keep|prune|SIZE",
        "help": "what becomes of images that the suite pulled or made: 'keep' leaves them all; 'prune' removes an "
        "instance's as soon as no case that is still to come needs them; a size, as 200GB, is a budget, above "
        "which those needed latest are removed. No other image is ever removed (default: keep)",
    },
    "--disk-reserve": {
        "type": size,
        "default": DEFAULT_RESERVE,
        "metavar": "SIZE",
        "help": "free space of the engine's disk below which no case is begun, and a tenth of it on that of the "
        "artifacts; the same command goes on when there is room again (default: 5GB)",
    },
}
