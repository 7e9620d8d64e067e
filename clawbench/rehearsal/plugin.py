"""The pytest plugin of a rehearsal: `-p clawbench.rehearsal.plugin`, in a folder that $CLAWBENCH_REHEARSAL names.

It brings the claws and puts the rehearsed engine in the real one's place, at the calls that reach an engine and
nowhere else. A name that is no more where it was ends the command: nothing real may be reached instead.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from clawbench.rehearsal.claws import NAMES, RehearsedClaw
from clawbench.rehearsal.engine import Engine, RehearsedTree
from clawbench.rehearsal.ledger import LEDGER, VARIABLE, Ledger, replace

SETTINGS = "settings.json"


def pytest_clawbench_adapters() -> list[RehearsedClaw]:
    """The claws."""
    return [RehearsedClaw(name) for name in NAMES]


def pytest_configure() -> None:
    """Put the rehearsed engine in place."""
    folder = Path(os.environ[VARIABLE])
    settings = json.loads((folder / SETTINGS).read_text())
    engine = Engine(Ledger(folder / LEDGER), settings["seed"], settings["breaks"])
    replace(
        {
            "clawbench.bench.connect": lambda: engine,
            "clawbench.session.connect": lambda: engine,
            "clawbench.images.keeper.connect": lambda: engine,
            "clawbench.images.keeper.image_here": engine.image_here,
            "clawbench.images.finding.find_image": engine.find_image,
            "clawbench.images.finding.prepare": engine.prepare,
            "clawbench.attribution.described": engine.described,
            "clawbench.solving.StartTree": RehearsedTree,
            "clawbench.solving.open_workspace": engine.open_workspace,
            "clawbench.solving.export": engine.export,
            "evaluation.harness._run": engine.run_harness,
        }
    )
