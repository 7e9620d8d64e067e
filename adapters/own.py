"""Without the gateway: a claw on its user's own configuration and credentials.

Both are in the container then, beside an open network, where the commands of the model can read them. What is
promised is that nothing else of the user's goes along, and that no file that was made to hold a credential gets
into the artifacts. What the claw or the model writes down of one elsewhere can't be helped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.base import BadOptionError, Shell

VARIABLES = (
    "ANTHROPIC_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
)
"""The environment variables with providers' keys that a claw which reads them is handed."""

_MARK = "gateway-off"


def credentials(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those of `VARIABLES` that are set and not empty."""
    return {name: environment[name] for name in VARIABLES if environment.get(name)}


def own_file(found: Path) -> Path:
    """The user's own config file.

    Args:
        found: what the adapter's `config_file` tells, which is the template where there is no file of the user's.

    Raises:
        BadOptionError: there is none.
    """
    if ".local" not in found.suffixes:
        own = found.with_suffix(f".local{found.suffix}")
        raise BadOptionError(
            f"--gateway off: the claw runs on a configuration of your own, and there is no {own}. Write the "
            "claw's own config there, as you would for the claw without clawbench"
        )
    return found


def set_over(own: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """An object with what the suite fixes set over it, level by level.

    Args:
        own: of the user's.
        fixed: of the suite's; it wins, and what it does not name stays.
    """
    result = dict(own)
    for name, value in fixed.items():
        below = result.get(name)
        result[name] = set_over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def mark(shell: Shell, folder: str) -> None:
    """Note in the claw's state folder, inside the container, that its config is the user's own."""
    shell.put(folder, {_MARK: b""})


def leave_out(session: Path, *patterns: str) -> None:
    """Remove the files that hold credentials from a copied state folder, where it has the mark.

    Args:
        session: what `backup_session` copied, on the host.
        patterns: as `Path.glob` reads them, relative to it.
    """
    if (session / _MARK).exists():
        for pattern in patterns:
            for path in session.glob(pattern):
                path.unlink()
