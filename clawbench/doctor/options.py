"""The command-line options of the checks."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a number of images, or 'all'")
    return int(text)


def _images(text: str) -> int:
    return 1 << 31 if text == "all" else _number(text)


CHECKS: dict[str, dict[str, Any]] = {
    "--doctor": {
        "action": "store_true",
        "help": "run nothing, and tell of everything that the run would need, line by line with what to do; what "
        "`clawbench doctor` calls",
    },
    "--skip-checks": {
        "action": "store_true",
        "help": "begin a real run (one that costs money, or has real instances) without looking first at the "
        "engine, the disk, the claws, the images and the model",
    },
    "--no-request": {
        "action": "store_true",
        "help": "leave out the checks' one tiny request to the model, which costs a fraction of a cent",
    },
    "--offline": {
        "action": "store_true",
        "help": "have the checks ask nobody but the engine: no model, no registry, no hub",
    },
    "--check-images": {
        "type": _images,
        "default": 3,
        "metavar": "N",
        "help": "how many images that are not here the checks ask the registry of, or 'all'; each may count as a "
        "pull there (default: 3)",
    },
}
"""The options, with what `--help` says of them."""
