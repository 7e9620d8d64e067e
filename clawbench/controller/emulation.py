"""Warnings about an engine whose architecture is not the one that the official images are published for."""

from __future__ import annotations

_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of architectures: as engines report them, and as images are published under."""


def warnings(platform: str | None, machine: str, *, real: bool) -> list[str]:
    """Lines for the user.

    Args:
        platform: the value of `--platform`, if it is given.
        machine: the engine's architecture, as it reports it.
        real: whether real instances are run.
    """
    own = _NAMES.get(machine, machine)
    wanted = platform.split("/")[1] if platform else own
    lines = []
    if wanted != own:
        lines.append(
            f"WARNING: --platform {platform} is emulated on this engine ({machine}), which must have QEMU's "
            "handlers (binfmt_misc): containers are slower, so timeouts allow for less work, and the results can't be "
            "compared with others"
        )
    if real and wanted == "arm64":
        lines.append(
            "WARNING: the official images for arm64 are older than the fix that removed solutions from their history. "
            "The suite strips the history anyway, but the environments differ: use --platform linux/amd64 for the "
            "current images"
        )
    return lines
