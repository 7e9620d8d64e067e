"""What every number of a run is attributed to: its settings, its claws, and the suite itself."""

from __future__ import annotations

import inspect
import os
import subprocess
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adapters.prompts import prompt_digest
from adapters.registry import adapter, installed
from clawbench.settings import Settings
from evaluation.harness import harness_version
from evaluation.sources import digest

ROOT = Path(__file__).resolve().parent.parent
"""The checkout that the suite runs from."""


def run_manifest(settings: Settings, claws: list[str]) -> dict[str, Any]:
    """The run's manifest, as far as it is known before any case is."""
    return {
        "clawbench": {"version": version("clawbench"), "commit": _commit()},
        "limits": {
            "spend_limit": str(settings.spend_limit) if settings.spend_limit is not None else None,
            "samples": settings.samples,
        },
        "settings": settings.attributed()
        | {"harness": harness_version(), "dataset_sha256": digest(settings.dataset or "")},
        "claws": {name: _claw(name, settings) for name in claws if installed(name)},
    }


def _claw(name: str, settings: Settings) -> dict[str, Any]:
    found = adapter(name)
    runtime = found.runtime()
    prompt = settings.prompt_file(found.prompt_file)
    return {
        "version": runtime.version,
        "found_by": runtime.found_by,
        "adapter_sha256": sha256(Path(inspect.getfile(type(found))).read_bytes()).hexdigest(),
        "config_sha256": sha256(found.config_file().read_bytes()).hexdigest(),
        "prompt": prompt,
        "prompt_sha256": prompt_digest(prompt),
    }


def _commit() -> str | None:
    """The suite's own commit, with `-dirty` where the checkout differs from it; None outside a checkout."""
    if not (ROOT / ".git").exists():
        return None
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ.get("PATH", os.defpath)},
    )
    return done.stdout.strip() or None
