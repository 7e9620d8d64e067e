"""A provider of the tests' own: a local server that speaks a dialect, declared in a file that runs are told of."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from demo.task_images import TASK_REPO
from gateway.behaviours.base import Job
from support.dialects.charges import Charge
from support.dialects.server import KEY, MODEL, Brain, DialectServer

PRICES = {MODEL: {"input": 3, "cache_read": "0.3", "cache_write": "3.75", "output": 15}}
KEY_NAME = "TEST_PROVIDER_KEY"
"""The variable that holds the key."""


def declare(folder: Path, server: DialectServer, **more: Any) -> dict[str, str]:
    """Declare the server as the provider `local`, with prices; returns the variables that a run needs."""
    fields: dict[str, Any] = {"base_url": server.base_url, "key_env": KEY_NAME, "apis": list(server.dialect.apis)}
    fields |= {"prices": PRICES} | more
    file = folder / "providers.yaml"
    file.write_text(yaml.safe_dump({"local": fields}))
    return {"CLAWBENCH_PROVIDERS": str(file), KEY_NAME: KEY}


def brain(instance_id: str, behaviour: str = "oracle") -> Brain:
    """A model for one embedded task, among others on the same server."""
    task = TASK_REPO / "tasks" / instance_id
    needle = (task / "problem_statement.md").read_text().strip().splitlines()[0]
    return Brain(behaviour, Job(instance_id, "/testbed", (task / "gold.patch").read_text()), needle)


def price_of(charge: Charge) -> Decimal:
    """What a reply cost by the declared prices, in US dollars."""
    rates = {name: Decimal(str(rate)) for name, rate in PRICES[MODEL].items()}
    tokens = {name: getattr(charge, name) for name in rates}
    return sum((tokens[name] * rate for name, rate in rates.items()), Decimal(0)) / 1_000_000
