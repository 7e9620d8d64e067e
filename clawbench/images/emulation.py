"""What is told where an engine's architecture is not the one that the official images are published for."""

from __future__ import annotations

_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Architectures as engines name their machine's, and as images name theirs."""


def warnings(platform: str | None, machine: str, *, real: bool) -> list[str]:
    """Lines for the user.

    Args:
        platform: what `--platform` says, None where it says nothing.
        machine: the engine's architecture, in its own words.
        real: whether real instances are run.
    """
    own = _NAMES.get(machine, machine)
    wanted = platform.split("/")[1] if platform else own
    lines = []
    if wanted != own:
        lines.append(
            f"WARNING: --platform {platform} is emulated on this engine ({machine}), which must have QEMU's "
            "handlers (binfmt_misc): all in containers is slower, so budgets of time mean less, and the numbers "
            "can't be compared with others"
        )
    if real and wanted == "arm64":
        lines.append(
            "WARNING: official images for arm64 are older than the fix that keeps solutions out of their history. "
            "It is stripped here all the same, but the environments are others: --platform linux/amd64 runs those "
            "that are published now"
        )
    return lines
