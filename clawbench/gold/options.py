"""The command-line options of gold."""

from __future__ import annotations

from typing import Any

GOLD: dict[str, dict[str, Any]] = {
    "--gold": {
        "action": "store_true",
        "help": "run no claw: have the official harness judge the gold patch of the selected instances, and an "
        "empty one, to learn whose environment is broken on this machine; what `clawbench gold` calls",
    },
    "--no-empty": {
        "action": "store_true",
        "help": "with --gold: leave out the empty patch, which takes as long again, and tells of instances that "
        "any patch resolves",
    },
}
"""The options, with what `--help` says of them."""
