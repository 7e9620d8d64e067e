"""How many worker processes a run has: one for each agent at work at once, and for each evaluation beside them.

`-n` is the number of agents, which wait for a remote model most of the time; evaluations burn cores, and have a
number of their own. A case that is being judged holds a process, so there are more of these than agents.
"""

from __future__ import annotations

import os
import sys

import pytest

from clawbench.settings import Settings


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_distributed(config: pytest.Config) -> bool:
    """Whether cases are run by workers of pytest-xdist."""
    return config.getoption("dist", "no") != "no" and bool(config.getoption("tx", []))


def agents_asked_for(config: pytest.Config) -> int:
    """How many agents are to be at work at once.

    Raises:
        ValueError: workers are asked for that can't be handed cases one at a time, or are on other machines.
    """
    if not is_distributed(config):
        return 1
    mode = config.getoption("dist")
    if mode != "load":
        raise ValueError(f"--dist={mode}: cases are handed out one at a time, to whoever is free; leave it out")
    strange = [spec for spec in config.getoption("tx") if spec.rpartition("*")[2].partition("//")[0] != "popen"]
    if strange:
        raise ValueError(f"--tx {strange[0]}: workers share this machine's files, so they are processes of it")
    from xdist.workermanage import parse_tx_spec_config  # noqa: PLC0415 - a command without workers needs no xdist

    return len(parse_tx_spec_config(config))


def add_workers(config: pytest.Config, settings: Settings) -> None:
    """Have pytest-xdist start as many workers as agents and evaluations need, and replace those that die.

    How many may die is not a matter of number in a run of days; `handing_out` ends a run that gets nowhere.
    """
    if not is_distributed(config):
        return
    config.option.tx = [*config.option.tx, *["popen"] * evaluations_beside(settings)]
    if config.option.maxworkerrestart is None:
        config.option.maxworkerrestart = str(sys.maxsize)


def evaluations_beside(settings: Settings) -> int:
    """How many workers there are beside those that have an agent at work."""
    return min(settings.eval_slots, settings.agents)


def described(settings: Settings) -> str:
    """How many of what there are, for the user."""
    agents, slots = settings.agents, settings.eval_slots
    return (
        f"{agents} agent{'s' * (agents > 1)} and {slots} evaluation{'s' * (slots > 1)} at once, "
        f"in {agents + evaluations_beside(settings)} workers"
    )
