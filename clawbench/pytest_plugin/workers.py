"""How many worker processes a run has: one for each agent that works at the same time, plus some for evaluations.

`-n` is the number of agents, which mostly wait for a remote model. Evaluations need a core each, so they have a limit
of their own. A case that is being judged occupies a process, so there are more processes than agents.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from clawbench.run.settings import Settings


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_distributed(config: pytest.Config) -> bool:
    """Whether cases are run by workers of pytest-xdist."""
    return config.getoption("dist", "no") != "no" and bool(config.getoption("tx", []))


def agents_asked_for(config: pytest.Config) -> int:
    """How many agents may work at the same time.

    Raises:
        ValueError: another `--dist` mode or workers on other machines were asked for.
    """
    if not is_distributed(config):
        return 1
    mode = config.getoption("dist")
    if mode != "load":
        raise ValueError(
            f"--dist={mode}: cases are sent one at a time to the next free worker; leave this option out"
        )
    strange = [spec for spec in config.getoption("tx") if spec.rpartition("*")[2].partition("//")[0] != "popen"]
    if strange:
        raise ValueError(
            f"--tx {strange[0]}: workers share this machine's files, so remote workers are not supported"
        )
    from xdist.workermanage import parse_tx_spec_config  # noqa: PLC0415 - a command without workers needs no xdist

    return len(parse_tx_spec_config(config))


def add_workers(config: pytest.Config, settings: Settings) -> None:
    """Make pytest-xdist start as many workers as agents and evaluations need, and replace those that die.

    Over days, any number of workers may die. `OneAtATime` ends the run if workers keep dying and no case ends.
    """
    if not is_distributed(config):
        return
    config.option.tx = [*config.option.tx, *["popen"] * settings.evaluators]
    if config.option.maxworkerrestart is None:
        config.option.maxworkerrestart = str(sys.maxsize)


def described(settings: Settings) -> str:
    """The numbers of agents, evaluations and workers, for the user."""
    return f"{settings.at_once}, in {settings.agents + settings.evaluators} workers"
