"""Config files of the user: where they are, and how a claw runs on one with the gateway off.

With the gateway off, the user's configuration and credentials are in the container beside an open network, and the
model's commands can read them. The suite guarantees only that nothing else of the user's is in there, and that no
file that was made to hold a credential gets into the artifacts. It can't prevent the claw or the model from
writing a credential down elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.base import BadOptionError, Shell

CONFIGS = Path(__file__).parents[1] / "claw_configs"
"""One folder of config templates per claw."""

VARIABLES = ("ANTHROPIC_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")
"""The environment variables with providers' keys that are passed to claws that read them."""

_MARK = "gateway-off"


def credentials(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those of `VARIABLES` that are set and not empty."""
    return {name: environment[name] for name in VARIABLES if environment.get(name)}


def own_file(found: Path) -> Path:
    """The user's own config file.

    Args:
        found: the adapter's `config_file`, which is the template if the user has no file.

    Raises:
        BadOptionError: the user has none.
    """
    if ".local" not in found.suffixes:
        own = found.with_suffix(f".local{found.suffix}")
        raise BadOptionError(
            f"--network own: the claw runs on a configuration of your own, and there is no {own}. Write the "
            "claw's own config there, as you would for the claw without clawbench"
        )
    return found


def set_over(own: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested objects.

    Args:
        own: the user's.
        fixed: the suite's; its values win, and keys that it does not have keep the user's values.
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
    """Remove the files that hold credentials from a copied state folder, if it has the mark.

    Args:
        session: the copy, on the host.
        patterns: globs relative to it.
    """
    if (session / _MARK).exists():
        for pattern in patterns:
            for path in session.glob(pattern):
                path.unlink()
