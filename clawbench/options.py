"""The suite's command-line options, and how they become settings."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from clawbench.selection import named_claws, wanted_claws
from clawbench.settings import Settings
from evaluation.lists import DATASETS
from gateway.scripted import BEHAVIOURS, parse_model
from workspace.container import Limits

DEFAULT_MODEL = "scripted:oracle"


def add_options(parser: pytest.Parser) -> None:
    """Declare them, each with what it means."""
    group = parser.getgroup("clawbench", "clawbench: measure coding-agent harnesses on SWE-bench")
    for name, settings in _OPTIONS.items():
        group.addoption(name, **settings)


def _model_help() -> str:
    behaviours = "; ".join(f"{name}: {behaviour.about}" for name, behaviour in BEHAVIOURS.items())
    told = f"the model behind the gateway (default: {DEFAULT_MODEL}, free of cost). scripted:<name>, one of: "
    return (told + behaviours).replace("%", "%%")


_OPTIONS: dict[str, dict[str, Any]] = {
    "--run-id": {
        "help": "name of the run and of its folder; the same name again goes on with that run "
        "(default: claw, model and time)"
    },
    "--model": {"default": DEFAULT_MODEL, "help": _model_help()},
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


def settings_from(config: pytest.Config) -> Settings:
    """The run's settings.

    Raises:
        pytest.UsageError: an option or a variable makes no sense; the message says which and why.
    """
    option = config.option
    try:
        parse_model(option.model)
        limits = Limits.from_environment()
        return Settings(
            run_id=option.run_id or _default_run_id(config),
            artifacts=Path(option.artifacts).absolute(),
            model=option.model,
            adapter=option.adapter,
            agent_timeout=option.agent_timeout,
            max_turns=option.max_turns,
            llm_no=option.llm_no,
            eval_timeout=option.eval_timeout,
            resume=not option.no_resume,
            keep_container=option.keep_container,
            egress=option.egress,
            dataset=option.dataset,
            revisions=_revisions(option.dataset_revision),
            pids_limit=limits.pids,
            memory=limits.memory,
        )
    except ValidationError as error:
        faults = [f"--{fault['loc'][0]}: {fault['msg']}".replace("_", "-") for fault in error.errors()]
        raise pytest.UsageError("; ".join(faults)) from error
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


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


def _default_run_id(config: pytest.Config) -> str:
    claws = "-".join(named_claws(config) or wanted_claws(config)) or "none"
    model = re.sub(r"[^A-Za-z0-9._-]", "-", config.option.model)
    bare = "-bare" if config.option.adapter == "bare" else ""
    return f"{claws}{bare}-{model}-{time.strftime('%Y%m%d-%H%M%S')}"[:120]
