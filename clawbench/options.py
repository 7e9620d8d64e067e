"""The suite's command-line options, and how they become settings."""

from __future__ import annotations

import re
import time
from argparse import ArgumentTypeError
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from pydantic import ValidationError

from clawbench import image_options
from clawbench.doctor.options import CHECKS
from clawbench.gold.options import GOLD
from clawbench.model_choice import Choice, check_claws, check_limits, choose
from clawbench.scheduling.workers import agents_asked_for, cores
from clawbench.selection import named_claws, wanted_claws
from clawbench.settings import MOST_SAMPLES, Settings
from evaluation.lists import DATASETS
from gateway.scripted import BEHAVIOURS
from workspace.container import Limits

DEFAULT_MODEL = "scripted:oracle"


def add_options(parser: pytest.Parser) -> None:
    """Declare them, each with what it means."""
    group = parser.getgroup("clawbench", "clawbench: measure coding-agent harnesses on SWE-bench")
    for name, settings in {**_OPTIONS, **image_options.OPTIONS, **CHECKS, **GOLD}.items():
        group.addoption(name, **settings)


def _model_help() -> str:
    behaviours = "; ".join(f"{name}: {behaviour.about}" for name, behaviour in BEHAVIOURS.items())
    told = (
        f"the model behind the gateway (default: {DEFAULT_MODEL}, free of cost). <provider>/<model>, of a "
        "provider that `clawbench providers` lists; replay:<folder>, which answers from what --record kept, the "
        "folder being a run's or one of cassettes named <case id>.jsonl; or scripted:<name>, one of: "
    )
    return (told + behaviours).replace("%", "%%")


def _samples(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 0 < number <= MOST_SAMPLES:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_SAMPLES}")
    return number


_OPTIONS: dict[str, dict[str, Any]] = {
    "--run-id": {
        "help": "name of the run and of its folder; the same name again goes on with that run "
        "(default: claw, model and time)"
    },
    "--model": {"help": _model_help()},
    "--spend-limit": {
        "metavar": "USD",
        "help": "the most that all cases of this run id may cost together; at it no request is let through, cases "
        "at work end with their patch exported, no other begins, and the same command with a higher limit goes on "
        "(default: none)",
    },
    "--case-spend-limit": {
        "metavar": "USD",
        "help": "the most that one case may cost: a budget like --agent-timeout, what is left at it is judged "
        "(default: none)",
    },
    "--exclude-waits": {
        "action": "store_true",
        "help": "extend the budget of wall clock by the time that a case was held back for rate limits and "
        "retries",
    },
    "--record": {
        "action": "store_true",
        "help": "keep every exchange with the model, without keys, as cassette.jsonl in each case's folder",
    },
    "--gateway": {
        "choices": ["on", "off"],
        "default": "on",
        "help": "'off' lets claws ask their own providers, by their user's own configuration and credentials, "
        "which are then in the workspace, with an open network: nothing is counted or limited, and the numbers "
        "can't be compared (default: on)",
    },
    "--adapter": {
        "choices": ["full", "bare"],
        "default": "full",
        "help": "'bare' is the paper's minimal adapter, for any claw: the prompt is the issue and a request for a "
        "diff in the final message, and that diff is judged, not what the claw did (default: full)",
    },
    "--agent-timeout": {
        "type": float,
        "default": 3600,
        "metavar": "SECONDS",
        "help": "budget of wall clock for one claw on one instance (default: 3600)",
    },
    "--samples": {
        "type": _samples,
        "default": 1,
        "metavar": "K",
        "help": "independent cases of each claw and instance, each in a fresh workspace; the same --run-id with a "
        "higher number adds to those that it has (default: 1)",
    },
    "--eval-slots": {
        "type": int,
        "metavar": "N",
        "help": "evaluations at once, of all runs on this machine; -n is the number of agents at once, which wait "
        "for their model most of the time while evaluations burn cores (default: the number of cores)",
    },
    "--infra-retries": {
        "type": int,
        "default": 2,
        "metavar": "N",
        "help": "how often a case that infrastructure broke, or whose worker died, is run again within the "
        "command; never for what a claw did (default: 2)",
    },
    "--max-turns": {
        "type": int,
        "default": 300,
        "metavar": "N",
        "help": "most model turns that the claw may take (default: 300)",
    },
    "--llm-no": {
        "type": int,
        "default": 0,
        "metavar": "N",
        "help": "generic only: which of its configured models to use (default: 0)",
    },
    "--eval-timeout": {
        "type": float,
        "default": 1800,
        "metavar": "SECONDS",
        "help": "time for the tests of one evaluation (default: 1800)",
    },
    "--min-pass-rate": {
        "metavar": "RATE",
        "help": "for CI: let the exit status say whether Pass@1 of every selected claw is at least RATE, as in "
        "0.4 or 40%%, whatever single cases did: 0 it is, 10 it is not, 11 it can't be told, as cases broke or "
        "were not run; what pytest says otherwise (interrupted, bad usage, nothing selected, other tests) stays",
    },
    "--artifacts": {"default": "artifacts", "metavar": "DIR", "help": "folder of all runs (default: artifacts)"},
    "--no-resume": {
        "action": "store_true",
        "help": "run the selected cases again although the run has their outcomes",
    },
    "--keep-container": {
        "choices": ["never", "failed", "always"],
        "default": "never",
        "help": "leave workspaces for looking into: ended, their names beginning with 'kept.' (default: never)",
    },
    "--egress": {
        "choices": ["gateway", "open"],
        "default": "gateway",
        "help": "'open' gives workspaces the open network: the numbers can't be compared then, and the manifest "
        "says so (default: gateway)",
    },
    "--dataset": {
        "metavar": "PATH",
        "help": "rows of the real instances: a .json, .jsonl or .parquet file, a saved dataset's folder, a task "
        "repo or a name on the hub (default: the official datasets)",
    },
    "--dataset-revision": {
        "action": "append",
        "default": [],
        "metavar": "[SET=]REVISION",
        "help": "commit, branch or tag of a dataset on the hub, for all sets or for one, as in "
        "multilingual=<commit>; may be given several times (default: what the run has recorded, else the head)",
    },
    "--instances": {
        "metavar": "FILE",
        "help": "run only the instances that a file lists: one id a line, '#' begins a comment; -m, -k and ids "
        "choose among them",
    },
}
"""The options, with what `--help` says of them."""


def settings_from(config: pytest.Config) -> tuple[Settings, Choice]:
    """The run's settings, and its model with all that its gateway must know.

    Raises:
        pytest.UsageError: an option or a variable makes no sense; the message says which and why.
    """
    option = config.option
    gateway = option.gateway == "on"
    try:
        choice = choose(option.model or (DEFAULT_MODEL if gateway else ""), gateway=gateway)
        if not gateway:
            _refuse_without_gateway(config)
        if option.record and choice.recordings is not None:
            raise ValueError(f"--record: what {choice.model} answers is a recording already")
        check_limits(choice, (name for name in _SPENDING if getattr(option, _dest(name)) is not None))
        check_claws(choice, wanted_claws(config))
        limits = Limits.from_environment()
        settings = Settings(
            run_id=option.run_id or _default_run_id(config, choice),
            artifacts=Path(option.artifacts).absolute(),
            model=choice.model,
            served=choice.served,
            adapter=option.adapter,
            agent_timeout=option.agent_timeout,
            exclude_waits=option.exclude_waits,
            spend_limit=option.spend_limit,
            case_spend_limit=option.case_spend_limit,
            samples=option.samples,
            agents=agents_asked_for(config),
            eval_slots=cores() if option.eval_slots is None else option.eval_slots,
            infra_retries=option.infra_retries,
            max_turns=option.max_turns,
            llm_no=option.llm_no,
            eval_timeout=option.eval_timeout,
            resume=not option.no_resume,
            keep_container=option.keep_container,
            egress=option.egress if gateway else "open",
            gateway=option.gateway,
            record=option.record,
            recordings=choice.recordings,
            dataset=option.dataset,
            revisions=_revisions(option.dataset_revision),
            platform=option.platform,
            image_policy=option.image_policy,
            disk_reserve=option.disk_reserve,
            pids_limit=limits.pids,
            memory=limits.memory,
            skip_checks=option.skip_checks,
        )
    except ValidationError as error:
        faults = [f"--{fault['loc'][0]}: {fault['msg']}".replace("_", "-") for fault in error.errors()]
        raise pytest.UsageError("; ".join(faults)) from error
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    return settings, choice


_SPENDING = ("--spend-limit", "--case-spend-limit")
_OF_THE_GATEWAY = (*_SPENDING, "--exclude-waits", "--record")


def _dest(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _refuse_without_gateway(config: pytest.Config) -> None:
    asked = [name for name in _OF_THE_GATEWAY if getattr(config.option, _dest(name))]
    if asked:
        raise ValueError(f"{' and '.join(asked)}: that is the gateway's work, and --gateway is off")


def _revisions(given: list[str]) -> dict[str, str]:
    """Revisions by set (raises ValueError)."""
    names = [name for name in DATASETS if name != "demo"]
    found: dict[str, str] = {}
    for word in given:
        name, _, revision = word.rpartition("=")
        if not revision or (name and name not in names):
            raise ValueError(
                f"--dataset-revision {word}: write [SET=]REVISION, SET being one of {', '.join(names)}"
            )
        found |= dict.fromkeys([name] if name else names, revision)
    return found


def _default_run_id(config: pytest.Config, choice: Choice) -> str:
    # two runs that are started in the same second are two runs
    moment = f"{time.strftime('%Y%m%d-%H%M%S')}-{token_hex(2)}"
    if config.option.gold:
        return f"gold-{moment}"
    claws = "-".join(named_claws(config) or wanted_claws(config)) or "none"
    model = re.sub(r"[^A-Za-z0-9._-]", "-", choice.model)
    bare = "-bare" if config.option.adapter == "bare" else ""
    return f"{claws}{bare}-{model}"[: 119 - len(moment)] + f"-{moment}"
