"""The pytest plugin of a rehearsal, which $CLAWBENCH_REHEARSAL names the folder of.

It brings the claws and puts the rehearsed engine in the real one's place, at the calls that reach an engine and
nowhere else. A name that is no more where it was ends the command: nothing real may be reached instead.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.long.rehearsal.ledger import LEDGER, VARIABLE, Ledger, replace
from tests.long.rehearsal.rehearsed_claws import NAMES, RehearsedClaw
from tests.long.rehearsal.rehearsed_engine import Engine, RehearsedTree

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
            "clawbench.run.worker_context.connect": lambda **_: engine,
            "clawbench.controller.run_session.connect": lambda: engine,
            "clawbench.controller.image_keeper.connect": lambda: engine,
            "clawbench.controller.image_keeper.image_here": engine.image_here,
            "clawbench.run.case.find_image": engine.find_image,
            "clawbench.run.case.prepare": engine.prepare,
            "clawbench.run.manifest.described": engine.described,
            "clawbench.run.agent_run.StartTree": RehearsedTree,
            "clawbench.run.agent_run.open_workspace": engine.open_workspace,
            "clawbench.run.agent_run.export": engine.export,
            "evaluation.harness._run": engine.run_harness,
        }
    )
